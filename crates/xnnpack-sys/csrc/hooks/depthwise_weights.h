// Weights of depthwise convolutions in the weights cache, see `depthwise_weights.c`.

#ifndef XNNPACK_SYS_DEPTHWISE_WEIGHTS_H
#define XNNPACK_SYS_DEPTHWISE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack/cache.h"
#include "xnnpack/operator.h"

// Returns where the operator's weights are, if its weights cache has them, or where to pack them to
// (`xnn_get_pointer_to_write_weights`).
void* xnnpack_sys_depthwise_weights(
    xnn_operator_t op, size_t size, int padding_byte, const struct xnn_weights_cache_look_up_key* key);

// Whether that found packed weights.
static inline bool xnnpack_sys_are_cached(const struct xnn_operator* op) {
  return op->weights_cache != NULL && op->packed_weights.offset != XNN_CACHE_NOT_FOUND;
}

#endif
