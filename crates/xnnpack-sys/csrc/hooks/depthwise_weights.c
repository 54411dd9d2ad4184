// Weights of depthwise convolutions in the weights cache: they are packed once, as those of other convolutions are. XNNPACK packs
// them for every runtime, and before it looks for them.

#include "hooks/depthwise_weights.h"

#include "xnnpack/operator-utils.h"

void* xnnpack_sys_depthwise_weights(
    xnn_operator_t op, size_t size, int padding_byte, const struct xnn_weights_cache_look_up_key* key)
{
  if (op->weights_cache != NULL) {
    op->packed_weights.offset = xnn_weights_cache_look_up(op->weights_cache, key);
  }
  return xnnpack_sys_are_cached(op)
             ? op->weights_cache->offset_to_addr(op->weights_cache->context, op->packed_weights.offset)
             : xnn_get_pointer_to_write_weights(op, size, padding_byte);
}
