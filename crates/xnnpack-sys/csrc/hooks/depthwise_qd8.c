// Depthwise convolutions of inputs that were quantized at run time, which XNNPACK does not have. Results are those of TFLite's
// reference kernels bit for bit.
//
// The operator is XNNPACK's for int8 with a scale for each channel, created with scales of 1: weights are packed with their
// own scales, and with fp32 biases. Outputs are fp32, so that strides are four times as long, and `compute_row` computes rows.

#include <string.h>

#include "hooks/depthwise_qd8.h"
#include "hooks/flags.h"
#include "hooks/indirection.h"
#include "ukernels/microkernel.h"
#include "xnnpack.h"
#include "xnnpack/compute.h"
#include "xnnpack/node-type.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

#define LANES DEPTHWISE_LANES

// Stored in place of an operator's parameters.
struct dynamic_params {
  float min;
  float max;
  // One for each image. Known when the operator is set up.
  const struct xnn_qd8_quantization_params* quantization;
};

typedef QD8_DEPTHWISE((*row_microkernel));

// Computes a block of channels, for processors without another microkernel. `weights` are those of the block. Compilers
// vectorize this if `lanes` is a constant, and sums of 16-bit products have instructions of their own.
static XNN_INLINE void block(
    size_t taps, const int8_t* const from[QD8_DEPTHWISE_MAX_TAPS], const int8_t* weights, size_t first, size_t lanes,
    float* output, const struct xnnpack_sys_qd8_depthwise_params* params)
{
  float bias[LANES];
  float scales[LANES];
  memcpy(bias, weights, sizeof(bias));
  const int8_t* const bytes = weights + sizeof(bias);
  memcpy(scales, bytes + LANES * taps, sizeof(scales));
  int32_t sums[LANES] = {0};
  for (size_t tap = 0; tap < taps; tap++) {
    if (from[tap] == NULL) {
      continue;
    }
    for (size_t lane = 0; lane < lanes; lane++) {
      const int16_t input = (int16_t) (from[tap][first + lane] - params->zero_point);
      sums[lane] += input * (int16_t) bytes[LANES * tap + lane];
    }
  }
  for (size_t lane = 0; lane < lanes; lane++) {
    const float sum = (float) sums[lane] * (scales[lane] * params->scale) + bias[lane];
    const float above = sum < params->min ? params->min : sum;
    output[first + lane] = above > params->max ? params->max : above;
  }
}

#define PORTABLE(name, taps) \
  static QD8_DEPTHWISE(name) { \
    do { \
      const int8_t* from[QD8_DEPTHWISE_MAX_TAPS]; \
      for (size_t tap = 0; tap < taps; tap++) { \
        from[tap] = input[tap] == zero ? NULL : input[tap] + input_offset; \
      } \
      const int8_t* of_block = weights; \
      size_t first = 0; \
      for (; channels - first >= LANES; first += LANES) { \
        block(taps, from, of_block, first, LANES, output, params); \
        of_block += LANES * (sizeof(float) + taps + sizeof(float)); \
      } \
      if (first != channels) { \
        block(taps, from, of_block, first, channels - first, output, params); \
      } \
      input = (const int8_t**) ((uintptr_t) input + input_stride); \
      output = (float*) ((uintptr_t) (output + channels) + output_increment); \
    } while (--output_width != 0); \
  }

PORTABLE(portable_of_9, 9)
PORTABLE(portable_of_25, 25)

const xnn_dwconv_unipass_ukernel_fn xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__scalar =
    (xnn_dwconv_unipass_ukernel_fn) portable_of_9;
const xnn_dwconv_unipass_ukernel_fn xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__scalar =
    (xnn_dwconv_unipass_ukernel_fn) portable_of_25;

static void compute_row(const struct dwconv_context* context, size_t image, size_t y) {
  struct dynamic_params params;
  memcpy(&params, &context->params, sizeof(params));
  const struct xnn_qd8_quantization_params* quantization = &params.quantization[image];
  const struct xnnpack_sys_qd8_depthwise_params of_image = {
      .zero_point = quantization->zero_point, .scale = quantization->inv_scale, .min = params.min, .max = params.max};
  const struct xnnpack_sys_place input = xnnpack_sys_place_of(context->indirect_input, y);
  float* output = (float*) ((uintptr_t) context->output + image * context->output_batch_stride +
                            y * context->output_height_stride);
  ((row_microkernel) context->unipass_ukernel)(
      context->groups, context->output_width, (const int8_t**) input.pointers, context->packed_weights, output,
      context->indirect_input_width_stride, context->output_increment,
      context->input_offset + image * context->input_batch_stride + input.offset, context->zero, &of_image);
}

static const void* constant(const struct xnn_node* node, const struct xnn_value* values, size_t input) {
  return input < node->num_inputs ? values[node->inputs[input]].data : NULL;
}

static enum xnn_status create(
    const struct xnn_node* node, const struct xnn_value* values, size_t num_values, struct xnn_operator_data* opdata,
    struct xnn_code_cache* code_cache, xnn_weights_cache_t weights_cache)
{
  const struct xnn_value* filter = &values[node->inputs[1]];
  const size_t channels = node->params.depthwise_convolution_2d.input_channels;
  const enum xnn_status status = xnn_create_convolution2d_nhwc_qs8_qc8w(
      node->params.depthwise_convolution_2d.input_padding_top, node->params.depthwise_convolution_2d.input_padding_right,
      node->params.depthwise_convolution_2d.input_padding_bottom,
      node->params.depthwise_convolution_2d.input_padding_left, node->params.depthwise_convolution_2d.kernel_height,
      node->params.depthwise_convolution_2d.kernel_width, node->params.depthwise_convolution_2d.subsampling_height,
      node->params.depthwise_convolution_2d.subsampling_width, node->params.depthwise_convolution_2d.dilation_height,
      node->params.depthwise_convolution_2d.dilation_width, /*groups=*/(uint32_t) channels,
      /*group_input_channels=*/1, /*group_output_channels=*/1, /*input_channel_stride=*/channels,
      /*output_channel_stride=*/channels, /*input_zero_point=*/0, /*input_scale=*/1.0f,
      filter->quantization.channelwise_scale, constant(node, values, 1), constant(node, values, 2),
      /*output_zero_point=*/0, /*output_scale=*/1.0f, INT8_MIN, INT8_MAX,
      node->flags | XNN_FLAG_DEPTHWISE_CONVOLUTION | XNNPACK_SYS_QD8_DEPTHWISE, code_cache, weights_cache, &opdata->operator_objects[0]);
  if (status != xnn_status_success) {
    return status;
  }
  const struct dynamic_params params = {.min = node->activation.output_min, .max = node->activation.output_max};
  memcpy(&opdata->operator_objects[0]->params, &params, sizeof(params));
  return xnn_status_success;
}

static enum xnn_status reshape(
    struct xnn_operator_data* opdata, struct xnn_value* values, size_t num_values, pthreadpool_t threadpool)
{
  xnn_operator_t op = opdata->operator_objects[0];
  const struct xnn_shape* input = &values[opdata->inputs[0]].shape;
  struct xnn_value* output = &values[opdata->outputs[0]];
  const size_t old_workspace_size = opdata->workspace_size;
  size_t height = 0;
  size_t width = 0;
  const enum xnn_status status = xnn_reshape_convolution2d_nhwc_qs8_qc8w(
      op, input->dim[0], input->dim[1], input->dim[2], &opdata->workspace_size, &opdata->workspace_alignment, &height,
      &width, threadpool);
  if (status != xnn_status_success) {
    return status;
  }
  struct dwconv_context* context = &op->context.dwconv.dwconv;
  context->output_height_stride *= sizeof(float);
  context->output_batch_stride *= sizeof(float);
  for (size_t i = 0; i < XNN_MAX_COMPUTE_INVOCATIONS; i++) {
    if (op->compute[i].task_2d == (pthreadpool_task_2d_t) xnnpack_sys_compute_dwconv_unipass) {
      op->compute[i].task_2d = (pthreadpool_task_2d_t) compute_row;
    }
  }
  output->shape = (struct xnn_shape) {.num_dims = 4, .dim = {input->dim[0], height, width, op->output_pixel_stride}};
  const size_t size = xnn_tensor_get_size(output);
  const bool is_larger = size > output->size || opdata->workspace_size > old_workspace_size;
  output->size = is_larger ? size : output->size;
  return is_larger ? xnn_status_reallocation_required : xnn_status_success;
}

static enum xnn_status setup(
    const struct xnn_operator_data* opdata, const struct xnn_value* values, size_t num_values, pthreadpool_t threadpool)
{
  xnn_operator_t op = opdata->operator_objects[0];
  const struct xnn_value* input = &values[opdata->inputs[0]];
  const enum xnn_status status = xnn_setup_convolution2d_nhwc_qs8_qc8w(
      op, opdata->workspace, input->data, values[opdata->outputs[0]].data);
  if (status != xnn_status_success) {
    return status;
  }
  struct dynamic_params params;
  memcpy(&params, &op->params, sizeof(params));
  params.quantization = (const void*) input->quantization.dynamic_params;
  memcpy(&op->context.dwconv.dwconv.params, &params, sizeof(params));
  return xnn_status_success;
}

_Static_assert(
    sizeof(struct dynamic_params) <= sizeof(((struct dwconv_context*) NULL)->params), "parameters have room for ours");

bool xnnpack_sys_is_qd8(xnn_subgraph_t subgraph, uint32_t id) {
  return id < subgraph->num_values && subgraph->values[id].datatype == xnn_datatype_qdint8;
}

enum xnn_status xnnpack_sys_define_qd8_depthwise_convolution_2d(
    xnn_subgraph_t subgraph, uint32_t input_padding_top, uint32_t input_padding_right, uint32_t input_padding_bottom,
    uint32_t input_padding_left, uint32_t kernel_height, uint32_t kernel_width, uint32_t subsampling_height,
    uint32_t subsampling_width, uint32_t dilation_height, uint32_t dilation_width, uint32_t depth_multiplier,
    size_t input_channels, float output_min, float output_max, uint32_t input_id, uint32_t filter_id, uint32_t bias_id,
    uint32_t output_id, uint32_t flags)
{
  const bool has_bias = bias_id != XNN_INVALID_VALUE_ID;
  const uint64_t taps = (uint64_t) kernel_height * kernel_width;
  if (taps == 0 || taps > QD8_DEPTHWISE_MAX_TAPS || depth_multiplier != 1 || input_channels == 0 ||
      input_channels > UINT32_MAX || filter_id >= subgraph->num_values || output_id >= subgraph->num_values ||
      (has_bias && bias_id >= subgraph->num_values)) {
    return xnn_status_unsupported_parameter;
  }
  const struct xnn_value* filter = &subgraph->values[filter_id];
  if (filter->datatype != xnn_datatype_qcint8 || filter->quantization.channel_dimension != 3 || filter->data == NULL ||
      subgraph->values[output_id].datatype != xnn_datatype_fp32 ||
      (has_bias && (subgraph->values[bias_id].datatype != xnn_datatype_fp32 || subgraph->values[bias_id].data == NULL))) {
    return xnn_status_unsupported_parameter;
  }
  struct xnn_node* node = xnn_subgraph_new_node(subgraph);
  if (node == NULL) {
    return xnn_status_out_of_memory;
  }
  node->type = xnn_node_type_depthwise_convolution_2d;
  node->params.depthwise_convolution_2d.input_padding_top = input_padding_top;
  node->params.depthwise_convolution_2d.input_padding_right = input_padding_right;
  node->params.depthwise_convolution_2d.input_padding_bottom = input_padding_bottom;
  node->params.depthwise_convolution_2d.input_padding_left = input_padding_left;
  node->params.depthwise_convolution_2d.kernel_height = kernel_height;
  node->params.depthwise_convolution_2d.kernel_width = kernel_width;
  node->params.depthwise_convolution_2d.subsampling_height = subsampling_height;
  node->params.depthwise_convolution_2d.subsampling_width = subsampling_width;
  node->params.depthwise_convolution_2d.dilation_height = dilation_height;
  node->params.depthwise_convolution_2d.dilation_width = dilation_width;
  node->params.depthwise_convolution_2d.depth_multiplier = depth_multiplier;
  node->params.depthwise_convolution_2d.input_channels = input_channels;
  node->activation.output_min = output_min;
  node->activation.output_max = output_max;
  node->num_inputs = has_bias ? 3 : 2;
  node->inputs[0] = input_id;
  node->inputs[1] = filter_id;
  node->inputs[2] = bias_id;
  node->num_outputs = 1;
  node->outputs[0] = output_id;
  node->flags = flags;
  node->create = create;
  node->reshape = reshape;
  node->setup = setup;
  return xnn_status_success;
}
