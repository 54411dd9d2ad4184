// See `join_rows.h`. XNNPACK calls a microkernel for each row. For few channels the call takes longer than the row. Here a number of
// copies of the one row are an operand for as many rows of the other. Each element is computed as before.

#include "hooks/join_rows.h"

#include <stdbool.h>
#include <string.h>

#include "xnnpack.h"
#include "xnnpack/common.h"
#include "xnnpack/compute.h"
#include "xnnpack/config-types.h"
#include "xnnpack/math.h"

// Bytes of the copies.
#define COPIES_BYTES 2048

// Calls for longer rows take next to none of the time.
#define MOST_ROW_BYTES 256

// Tasks for each thread, so that the others do not wait long for the last one.
#define TASKS 4

// The last of the strides is that of rows.
enum { ROWS = XNN_MAX_TENSOR_DIMS - 2 };

static void compute_rows(const struct elementwise_binary_context* context, size_t start, size_t count) {
  const size_t row = context->elements;
  const bool is_first = context->a_stride[ROWS] == 0;
  const size_t most = min(count, COPIES_BYTES / row);
  // Microkernels read behind operands.
  XNN_ALIGN(64) char copies[COPIES_BYTES + XNN_EXTRA_BYTES];
  for (size_t i = 0; i < most; i++) {
    memcpy(copies + i * row, is_first ? context->a : context->b, row);
  }
  const size_t stride = is_first ? context->b_stride[ROWS] : context->a_stride[ROWS];
  const char* other = (const char*) (is_first ? context->b : context->a) + start * stride;
  char* to = (char*) context->y + start * context->y_stride[ROWS];
  while (count > 0) {
    const size_t rows = min(count, most);
    context->ukernel(rows * row, is_first ? copies : other, is_first ? other : copies, to, &context->params);
    other += rows * stride;
    to += rows * row;
    count -= rows;
  }
}

void xnnpack_sys_join_rows(xnn_operator_t op, size_t threads) {
  const struct elementwise_binary_context* context = &op->context.elementwise_binary;
  const size_t row = context->elements;
  const size_t a = context->a_stride[ROWS];
  const size_t b = context->b_stride[ROWS];
  const bool is_one_row = (a == 0 && b == row) || (b == 0 && a == row);
  if (!is_one_row || row > MOST_ROW_BYTES || context->ukernel != op->binary_elementwise_config->op_ukernel) {
    return;
  }
  const size_t rows = op->compute[0].range[0];
  op->compute[0].type = xnn_parallelization_type_1d_tile_1d;
  op->compute[0].task_1d_tile_1d = (pthreadpool_task_1d_tile_1d_t) compute_rows;
  op->compute[0].tile[0] = threads <= 1 ? rows : max(divide_round_up(rows, threads * TASKS), COPIES_BYTES / row);
}
