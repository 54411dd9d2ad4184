// See `softmax.h`. XNNPACK computes one row at a time, with four microkernels.

#include "hooks/softmax.h"

#include <stddef.h>

#include "ukernels/softmax_f32.h"
#include "xnnpack/compute.h"
#include "xnnpack/math.h"

// Floats that a thread takes at a time.
#define PIECE 4096

static void compute_rows(const struct floating_point_softmax_context* context, size_t first, size_t rows) {
  const size_t count = context->n / sizeof(float);
  xnnpack_sys_f32_softmax_rows_function(count)(
      rows, count, (const float*) ((uintptr_t) context->x + first * context->x_stride), context->x_stride,
      (float*) ((uintptr_t) context->y + first * context->y_stride), context->y_stride);
}

void xnnpack_sys_softmax_rows(xnn_operator_t op, uint32_t log2_element_size) {
  const size_t count = op->context.floating_point_softmax.n / sizeof(float);
  if (log2_element_size != XNN_LOG2_SIZEOF_FLOAT || xnnpack_sys_f32_softmax_rows_function(count) == NULL) {
    return;
  }
  op->compute[0].type = xnn_parallelization_type_1d_tile_1d;
  op->compute[0].task_1d_tile_1d = (pthreadpool_task_1d_tile_1d_t) compute_rows;
  op->compute[0].tile[0] = max(PIECE / count, 1);
}
