// See `pool_images.h`. A window is as wide as the image, starts where the one before it ends, and has no padding. XNNPACK calls a
// microkernel for each of them.

#include "hooks/pool_images.h"

#include <stdbool.h>
#include <stdint.h>

#include "config/operators.h"
#include "hooks/flags.h"
#include "hooks/graph.h"
#include "xnnpack/common.h"
#include "xnnpack/compute.h"
#include "xnnpack/math.h"
#include "xnnpack/subgraph.h"

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

bool xnnpack_sys_pool_images(xnn_operator_t op, size_t batch_size, uint32_t log2_element_size) {
  const bool of_negative = (op->flags & XNNPACK_SYS_OF_NEGATIVE) != 0;
  const xnnpack_sys_image_max_fn function = xnnpack_sys_image_max_function(op->type, op->channels, of_negative);
  if (function == NULL || !are_neighbours(op)) {
    return !of_negative;
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
  return true;
}

static enum xnn_operator_type operator_type_of(enum xnn_datatype datatype) {
  switch (datatype) {
    case xnn_datatype_fp32: return xnn_operator_type_max_pooling_nhwc_f32;
    case xnn_datatype_qint8: return xnn_operator_type_max_pooling_nhwc_s8;
    case xnn_datatype_quint8: return xnn_operator_type_max_pooling_nhwc_u8;
    default: return xnn_operator_type_invalid;
  }
}

// Whether a pooling has one window as large as the image, whose size a reshape fixes, and a microkernel for negative elements.
static bool is_of_images(const struct xnn_subgraph* subgraph, const struct xnn_node* node) {
  if (node->type != xnn_node_type_max_pooling_2d) {
    return false;
  }
  const struct xnn_value* input = &subgraph->values[node->inputs[0]];
  const struct xnn_node* reshape = xnnpack_sys_only_for_one(subgraph, node->inputs[0]);
  if (reshape == NULL || reshape->type != xnn_node_type_static_reshape || input->shape.num_dims != 4) {
    return false;
  }
  const struct xnn_shape* image = &reshape->params.static_reshape.new_shape;
  const uint32_t paddings = node->params.pooling_2d.padding_top | node->params.pooling_2d.padding_right |
      node->params.pooling_2d.padding_bottom | node->params.pooling_2d.padding_left;
  const bool is_dilated = (node->params.pooling_2d.dilation_height | node->params.pooling_2d.dilation_width) > 1;
  return image->num_dims == 4 && image->dim[1] == node->params.pooling_2d.pooling_height &&
      image->dim[2] == node->params.pooling_2d.pooling_width && paddings == 0 && !is_dilated &&
      (node->flags & XNN_FLAG_TENSORFLOW_SAME_PADDING) == 0 &&
      xnnpack_sys_image_max_function(operator_type_of(input->datatype), input->shape.dim[3], /*of_negative=*/true) != NULL;
}

// Whether a node negates numbers by flipping bits: the sign of floats, and all bits of integers.
static bool flips_bits(const struct xnn_node* node, const struct xnn_value* values) {
  if (node->type != xnn_node_type_unary_elementwise || node->unary_operator != xnn_unary_negate) {
    return false;
  }
  const struct xnn_value* input = &values[node->inputs[0]];
  const struct xnn_value* output = &values[node->outputs[0]];
  const int32_t sum = input->quantization.zero_point + output->quantization.zero_point;
  switch (input->datatype) {
    case xnn_datatype_fp32: return output->datatype == xnn_datatype_fp32;
    case xnn_datatype_qint8: return sum == -1 && input->quantization.scale == output->quantization.scale;
    case xnn_datatype_quint8: return sum == UINT8_MAX && input->quantization.scale == output->quantization.scale;
    default: return false;
  }
}

void xnnpack_sys_negate_in_poolings(xnn_subgraph_t subgraph) {
  bool is_changed = false;
  for (uint32_t i = 0; i < subgraph->num_nodes; i++) {
    struct xnn_node* pooling = &subgraph->nodes[i];
    if (!is_of_images(subgraph, pooling)) {
      continue;
    }
    struct xnn_node* reader = pooling;
    struct xnn_node* writer = xnnpack_sys_only_for_one(subgraph, reader->inputs[0]);
    while (writer != NULL && writer->type == xnn_node_type_static_reshape) {
      reader = writer;
      writer = xnnpack_sys_only_for_one(subgraph, reader->inputs[0]);
    }
    if (writer == NULL || !flips_bits(writer, subgraph->values)) {
      continue;
    }
    const uint32_t negative = reader->inputs[0];
    reader->inputs[0] = writer->inputs[0];
    pooling->flags |= XNNPACK_SYS_OF_NEGATIVE;
    xnn_value_clear(&subgraph->values[negative]);
    xnn_node_clear(writer);
    is_changed = true;
  }
  if (is_changed) {
    xnn_subgraph_analyze_consumers_and_producers(subgraph);
  }
}
