// Quantizes floats at run time as TFLite's reference kernels do: XNNPACK's scales and zero points differ in the last
// bits, and it rounds halves to even. Most steps of a network repeat what one of them changes.

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "quantize_qd8.h"
#include "xnnpack/compute.h"

// `low` and `high` are the range that includes 0.
static struct xnn_qd8_quantization_params quantization_of(float low, float high) {
  if (low == high) {
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = 1.0f};
  }
  const float scale = (high - low) / 255.0f;
  if (!isfinite(scale)) {
    // No integers stand for infinities: what is computed from them is no number.
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = NAN};
  }
  // Of the two ends the one whose zero point is the more exact decides.
  const double below = (double) low / (double) scale;
  const double above = (double) high / (double) scale;
  const bool from_below = -INT8_MIN + fabs(below) < INT8_MAX + fabs(above);
  const double exact = from_below ? INT8_MIN - below : INT8_MAX - above;
  const double zero_point = round(fmin(fmax(exact, INT8_MIN), INT8_MAX));
  return (struct xnn_qd8_quantization_params) {.zero_point = (int32_t) zero_point, .inv_scale = scale};
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
    output[i] = (int8_t) ((int32_t) (x + copysignf(JUST_BELOW_HALF, x)) + zero_point);
  }
}

void xnnpack_sys_compute_f32_qd8_convert(const struct f32_qd8_convert_context* context, size_t row) {
  const float* input = (const float*) ((uintptr_t) context->x + row * context->x_stride);
  int8_t* output = (int8_t*) ((uintptr_t) context->y + row * context->y_stride);
  const size_t count = context->n / sizeof(float);
  float range[2];
  context->rminmax_ukernel(context->n, input, range, &context->params);
  const struct xnn_qd8_quantization_params quantization =
      quantization_of(range[0] < 0 ? range[0] : 0, range[1] > 0 ? range[1] : 0);
  context->quantization_params[row] = quantization;
  if (isnan(quantization.inv_scale)) {
    memset(output, 0, count);
  } else {
    xnnpack_sys_f32_to_qd8_function()(count, input, output, 1.0f / quantization.inv_scale, quantization.zero_point);
  }
}
