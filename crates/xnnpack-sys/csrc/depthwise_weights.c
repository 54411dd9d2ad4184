// Weights of depthwise convolutions, in the weights cache.

#include "depthwise_weights.h"

static __thread xnn_weights_cache_t cache_of_nodes;

void xnnpack_sys_cache_depthwise_weights(xnn_weights_cache_t weights_cache) { cache_of_nodes = weights_cache; }

void* xnnpack_sys_depthwise_weights(
    xnn_operator_t op, size_t size, int padding_byte, const struct xnn_weights_cache_look_up_key* key)
{
  if (op->weights_cache == NULL) {
    op->weights_cache = cache_of_nodes;
  }
  if (op->weights_cache == NULL) {
    return xnn_get_pointer_to_write_weights(op, size, padding_byte);
  }
  op->packed_weights.offset = xnn_weights_cache_look_up(op->weights_cache, key);
  return XNNPACK_SYS_ARE_PACKED(op)
             ? op->weights_cache->offset_to_addr(op->weights_cache->context, op->packed_weights.offset)
             : xnn_get_pointer_to_write_weights(op, size, padding_byte);
}
