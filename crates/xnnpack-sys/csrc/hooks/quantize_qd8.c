// Quantization of images at run time as in TFLite's reference kernels: XNNPACK's scales and zero points differ in the last
// bits, and it rounds ties to even. Each different element causes more of them in the layers that follow.
//
// To XNNPACK an image is one row, which one thread quantizes. Here several threads quantize pieces of it.

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pthreadpool.h"
#include "hooks/flags.h"
#include "hooks/quantize_qd8.h"
#include "xnnpack.h"
#include "xnnpack/compute.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

// Floats of a piece. The last piece has the rest, too.
#define PIECE 16384

// Both are NaN if one of the floats is.
struct range {
  float low;
  float high;
};

static struct range range_of(const struct f32_qd8_convert_context* context, const float* input, size_t count) {
  struct range range;
  context->rminmax_ukernel(count * sizeof(float), input, &range, &context->params);
  return range;
}

static struct xnn_qd8_quantization_params quantization_of(struct range range) {
  // The range includes 0.
  const float low = range.low > 0 ? 0 : range.low;
  const float high = range.high < 0 ? 0 : range.high;
  if (low == high) {
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = 1.0f};
  }
  const float scale = (high - low) / 255.0f;
  if (!isfinite(scale)) {
    // No integer represents NaN or infinity: everything computed from the image is NaN.
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = NAN};
  }
  // The zero point is that of the end for which it is more exact.
  const double below = -(double) low / (double) scale;
  const double above = (double) high / (double) scale;
  double zero_point = -INT8_MIN + below < INT8_MAX + above ? INT8_MIN + below : INT8_MAX - above;
  zero_point = zero_point > INT8_MIN ? zero_point : INT8_MIN;
  zero_point = zero_point < INT8_MAX ? zero_point : INT8_MAX;
  return (struct xnn_qd8_quantization_params) {.zero_point = (int32_t) round(zero_point), .inv_scale = scale};
}

void xnnpack_sys_portable_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset)
{
  const float low = (float) (INT8_MIN - zero_point);
  const float high = (float) (INT8_MAX - zero_point);
  for (size_t i = 0; i < count; i++) {
    float x = input[i] * scale;
    x = x > low ? x : low;
    x = x < high ? x : high;
    output[i] = (int8_t) (uint8_t) ((int32_t) (x + copysignf(0.5f, x)) + zero_point + offset);
  }
}

// The zero point of `by` includes the offset.
static void quantize(
    struct xnn_qd8_quantization_params by, int32_t offset, const float* input, int8_t* output, size_t count)
{
  if (isnan(by.inv_scale)) {
    memset(output, 0, count);
  } else {
    xnnpack_sys_f32_to_qd8_function()(count, input, output, 1.0f / by.inv_scale, by.zero_point - offset, offset);
  }
}

static struct xnn_qd8_quantization_params with_offset(struct xnn_qd8_quantization_params by, int32_t offset) {
  return (struct xnn_qd8_quantization_params) {.zero_point = by.zero_point + offset, .inv_scale = by.inv_scale};
}

static void quantize_image(const struct f32_qd8_convert_context* context, size_t image, int32_t offset) {
  const float* input = (const float*) ((uintptr_t) context->x + image * context->x_stride);
  int8_t* output = (int8_t*) ((uintptr_t) context->y + image * context->y_stride);
  const size_t count = context->n / sizeof(float);
  context->quantization_params[image] = with_offset(quantization_of(range_of(context, input, count)), offset);
  quantize(context->quantization_params[image], offset, input, output, count);
}

static size_t pieces(const struct f32_qd8_convert_context* context) { return context->n / sizeof(float) / PIECE; }

static size_t piece_size(const struct f32_qd8_convert_context* context, size_t piece) {
  const bool is_last = piece + 1 == pieces(context);
  return is_last ? context->n / sizeof(float) - piece * PIECE : PIECE;
}

// Stores the range of a piece where its integers will be.
static void find_range(const struct f32_qd8_convert_context* context, size_t piece) {
  const struct range range = range_of(context, context->x + piece * PIECE, piece_size(context, piece));
  memcpy(context->y + piece * PIECE, &range, sizeof(range));
}

static void join_ranges(const struct f32_qd8_convert_context* context, size_t task, int32_t offset) {
  struct range all = {0, 0};
  for (size_t piece = 0; piece < pieces(context); piece++) {
    struct range range;
    memcpy(&range, context->y + piece * PIECE, sizeof(range));
    if (isnan(range.low)) {
      all = range;
      break;
    }
    all.low = range.low < all.low ? range.low : all.low;
    all.high = range.high > all.high ? range.high : all.high;
  }
  context->quantization_params[0] = with_offset(quantization_of(all), offset);
  xnn_compute_pad_qd8_params(context, task);
}

static void quantize_piece(const struct f32_qd8_convert_context* context, size_t piece, int32_t offset) {
  const size_t first = piece * PIECE;
  const size_t size = piece_size(context, piece);
  quantize(context->quantization_params[0], offset, context->x + first, context->y + first, size);
}

#define TASK(task) \
  static void signed_##task(const struct f32_qd8_convert_context* context, size_t i) { task(context, i, 0); } \
  static void unsigned_##task(const struct f32_qd8_convert_context* context, size_t i) { task(context, i, -INT8_MIN); }

TASK(quantize_image)
TASK(join_ranges)
TASK(quantize_piece)

static void set_compute(struct compute_parameters* compute, pthreadpool_task_1d_t task, size_t range) {
  compute->type = xnn_parallelization_type_1d;
  compute->task_1d = task;
  compute->range[0] = range;
}

enum xnn_status xnnpack_sys_reshape_quantized_images(
    xnn_operator_t op, size_t batch_size, size_t channels, size_t input_stride, size_t output_stride,
    pthreadpool_t threadpool)
{
  const enum xnn_status status =
      xnn_reshape_convert_nc_f32_qd8(op, batch_size, channels, input_stride, output_stride, threadpool);
  if (status != xnn_status_success || batch_size == 0) {
    return status;
  }
#define OF(task) (pthreadpool_task_1d_t) ((op->flags & XNNPACK_SYS_UNSIGNED_IMAGES) != 0 ? unsigned_##task : signed_##task)
  op->compute[0].task_1d = OF(quantize_image);
  op->compute[2].type = xnn_parallelization_type_invalid;
  const struct f32_qd8_convert_context* context = &op->context.f32_qd8_convert;
  if (batch_size == 1 && pieces(context) > 1 && pthreadpool_get_threads_count(threadpool) > 1) {
    set_compute(&op->compute[0], (pthreadpool_task_1d_t) find_range, pieces(context));
    set_compute(&op->compute[1], OF(join_ranges), 1);
    set_compute(&op->compute[2], OF(quantize_piece), pieces(context));
  }
  return xnn_status_success;
}

// Removes from `images` those that are not quantized from fp32 and those that anything but convolutions to fp32 reads.
static void check_node(const struct xnn_node* node, const struct xnn_value* values, bool* images) {
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    images[node->outputs[i]] &= node->num_inputs == 1 && values[node->inputs[0]].datatype == xnn_datatype_fp32;
  }
  const bool convolves =
      node->type == xnn_node_type_convolution_2d && values[node->outputs[0]].datatype == xnn_datatype_fp32;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    images[node->inputs[i]] &= convolves && i == 0;
  }
}

static bool is_image(const struct xnn_value* value) {
  return value->datatype == xnn_datatype_qdint8 && value->quantization.num_nonbatch_dims == 3;
}

static void mark(xnn_subgraph_t subgraph, bool* images) {
  for (uint32_t i = 0; i < subgraph->num_values; i++) {
    images[i] = is_image(&subgraph->values[i]);
  }
  for (uint32_t i = 0; i < subgraph->num_nodes; i++) {
    const struct xnn_node* node = &subgraph->nodes[i];
    if (node->type != xnn_node_type_invalid) {
      check_node(node, subgraph->values, images);
    }
  }
  for (uint32_t i = 0; i < subgraph->num_nodes; i++) {
    struct xnn_node* node = &subgraph->nodes[i];
    const bool is_used = node->type != xnn_node_type_invalid && node->num_inputs > 0 && node->num_outputs > 0;
    if (is_used && (images[node->inputs[0]] || images[node->outputs[0]])) {
      node->flags |= XNNPACK_SYS_UNSIGNED_IMAGES;
    }
  }
}

void xnnpack_sys_mark_unsigned_images(xnn_subgraph_t subgraph) {
  if (!xnnpack_sys_has_unsigned_image_microkernels() || subgraph->num_values == 0) {
    return;
  }
  bool* images = malloc(subgraph->num_values * sizeof(bool));
  // Without memory for it images keep their sign.
  if (images != NULL) {
    mark(subgraph, images);
    free(images);
  }
}
