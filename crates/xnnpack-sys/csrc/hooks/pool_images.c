// See `pool_images.h`. A window is as wide as the image, starts where the one before it ends, and has no padding. XNNPACK calls a
// microkernel for each of them.

#include "hooks/pool_images.h"

#include <stdbool.h>

#include "config/operators.h"
#include "xnnpack/common.h"
#include "xnnpack/compute.h"
#include "xnnpack/math.h"

// Bytes of images that a thread computes in turn.
#define BYTES_IN_TURN 16384

static bool are_neighbours(const struct xnn_operator* op) {
  const bool is_padded = (op->padding_top | op->padding_right | op->padding_bottom | op->padding_left) != 0;
  const bool is_dilated = (op->dilation_height | op->dilation_width) > 1;
  const bool is_dense = op->input_pixel_stride == op->channels && op->output_pixel_stride == op->channels;
  return !is_padded && !is_dilated && is_dense && op->kernel_width == op->input_width &&
      (op->output_height == 1 || op->stride_height == op->kernel_height) &&
      op->output_height * op->kernel_height == op->input_height;
}

// The context keeps the microkernel as a function of another type. Compilers warn of such casts, except by way of this type.
typedef void (*any_fn)(void);

static void compute_images(const struct max_pooling_context* context, size_t image, size_t count) {
  const size_t bytes = image * context->input_batch_stride;
  ((xnnpack_sys_image_max_fn) (any_fn) context->ukernel)(
      count, context->pooling_size, context->channels,
      (const void*) ((uintptr_t) *context->indirect_input + context->input_offset + bytes),
      (void*) ((uintptr_t) context->output + image * context->output_batch_stride), &context->params);
}

void xnnpack_sys_pool_images(xnn_operator_t op, size_t batch_size, uint32_t log2_element_size) {
  const xnnpack_sys_image_max_fn function = xnnpack_sys_image_max_function(op->type, op->channels);
  if (function == NULL || !are_neighbours(op)) {
    return;
  }
  struct max_pooling_context* context = &op->context.max_pooling;
  context->ukernel = (xnn_maxpool_ukernel_fn) (any_fn) function;
  context->input_batch_stride = context->pooling_size * op->channels << log2_element_size;
  context->output_batch_stride = op->channels << log2_element_size;
  op->compute[0] = (struct compute_parameters) {
      .type = xnn_parallelization_type_1d_tile_1d,
      .task_1d_tile_1d = (pthreadpool_task_1d_tile_1d_t) compute_images,
      .range = {batch_size * op->output_height},
      .tile = {max(BYTES_IN_TURN / context->input_batch_stride, 1)},
  };
}
