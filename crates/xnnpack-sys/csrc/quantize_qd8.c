// Quantizes images at run time as TFLite's reference kernels do: XNNPACK's scales and zero points differ in the last
// bits, and it rounds halves to even. Any step that is another one makes more of them in the layers that follow.
//
// XNNPACK has a thread quantize a row, which an image is: here several threads quantize pieces of it.

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "pthreadpool.h"
#include "quantize_qd8.h"
#include "xnnpack.h"
#include "xnnpack/compute.h"
#include "xnnpack/operator.h"

// Floats of a piece, the last of which has the rest besides.
#define PIECE 16384

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
  // Integers stand for 0, too.
  const float low = range.low < 0 ? range.low : 0;
  const float high = range.high > 0 ? range.high : 0;
  if (low == high) {
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = 1.0f};
  }
  const float scale = (high - low) / 255.0f;
  if (!isfinite(scale)) {
    // No integers stand for infinities: what is computed from them is no number.
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = NAN};
  }
  // Of the two ends the one whose zero point is the more exact decides.
  const double below = -(double) low / (double) scale;
  const double above = (double) high / (double) scale;
  double zero_point = -INT8_MIN + below < INT8_MAX + above ? INT8_MIN + below : INT8_MAX - above;
  zero_point = zero_point > INT8_MIN ? zero_point : INT8_MIN;
  zero_point = zero_point < INT8_MAX ? zero_point : INT8_MAX;
  return (struct xnn_qd8_quantization_params) {.zero_point = (int32_t) round(zero_point), .inv_scale = scale};
}

void xnnpack_sys_portable_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point)
{
  const float low = (float) (INT8_MIN - zero_point);
  const float high = (float) (INT8_MAX - zero_point);
  for (size_t i = 0; i < count; i++) {
    float x = input[i] * scale;
    x = x > low ? x : low;
    x = x < high ? x : high;
    output[i] = (int8_t) ((int32_t) (x + copysignf(0.5f, x)) + zero_point);
  }
}

static void quantize(struct xnn_qd8_quantization_params by, const float* input, int8_t* output, size_t count) {
  if (isnan(by.inv_scale)) {
    memset(output, 0, count);
  } else {
    xnnpack_sys_f32_to_qd8_function()(count, input, output, 1.0f / by.inv_scale, by.zero_point);
  }
}

static void quantize_image(const struct f32_qd8_convert_context* context, size_t image) {
  const float* input = (const float*) ((uintptr_t) context->x + image * context->x_stride);
  int8_t* output = (int8_t*) ((uintptr_t) context->y + image * context->y_stride);
  const size_t count = context->n / sizeof(float);
  context->quantization_params[image] = quantization_of(range_of(context, input, count));
  quantize(context->quantization_params[image], input, output, count);
}

static size_t pieces(const struct f32_qd8_convert_context* context) { return context->n / sizeof(float) / PIECE; }

static size_t piece_size(const struct f32_qd8_convert_context* context, size_t piece) {
  const bool is_last = piece + 1 == pieces(context);
  return is_last ? context->n / sizeof(float) - piece * PIECE : PIECE;
}

// Its range is kept where its integers will be.
static void find_range(const struct f32_qd8_convert_context* context, size_t piece) {
  const struct range range = range_of(context, context->x + piece * PIECE, piece_size(context, piece));
  memcpy(context->y + piece * PIECE, &range, sizeof(range));
}

static void join_ranges(const struct f32_qd8_convert_context* context, size_t task) {
  struct range all = {0, 0};
  for (size_t piece = 0; piece < pieces(context); piece++) {
    struct range range;
    memcpy(&range, context->y + piece * PIECE, sizeof(range));
    all.low = range.low < all.low ? range.low : all.low;
    all.high = range.high > all.high ? range.high : all.high;
  }
  context->quantization_params[0] = quantization_of(all);
  xnn_compute_pad_qd8_params(context, task);
}

static void quantize_piece(const struct f32_qd8_convert_context* context, size_t piece) {
  const size_t first = piece * PIECE;
  quantize(context->quantization_params[0], context->x + first, context->y + first, piece_size(context, piece));
}

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
  op->compute[0].task_1d = (pthreadpool_task_1d_t) quantize_image;
  op->compute[2].type = xnn_parallelization_type_invalid;
  const struct f32_qd8_convert_context* context = &op->context.f32_qd8_convert;
  if (batch_size == 1 && pieces(context) > 1 && pthreadpool_get_threads_count(threadpool) > 1) {
    set_compute(&op->compute[0], (pthreadpool_task_1d_t) find_range, pieces(context));
    set_compute(&op->compute[1], (pthreadpool_task_1d_t) join_ranges, 1);
    set_compute(&op->compute[2], (pthreadpool_task_1d_t) quantize_piece, pieces(context));
  }
  return xnn_status_success;
}
