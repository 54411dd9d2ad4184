// Quantization of rows at run time, instead of `xnn_f32_qd8_asymmetric_quantization_params`.

#ifndef XNNPACK_SYS_QUANTIZE_ROWS_H
#define XNNPACK_SYS_QUANTIZE_ROWS_H

#include <math.h>
#include <stdint.h>

#include "xnnpack/common.h"
#include "xnnpack/microparams.h"

// Returns the integer nearest to a float, which is moved into the range of int8.
static XNN_INLINE int32_t xnnpack_sys_nearest_int8(float x) {
  // The second operand if one is NaN.
  x = x > (float) INT8_MIN ? x : (float) INT8_MIN;
  x = x < (float) INT8_MAX ? x : (float) INT8_MAX;
  // Sums with this are integers, and ties are rounded to even.
  return (int32_t) ((x + 0x1.8p23f) - 0x1.8p23f);
}

// Returns XNNPACK's quantization of a row with these least and greatest elements. If one of them is not finite, no integer represents it:
// the scale is NaN, so that everything computed from the row is.
//
// XNNPACK calls a function to round, and branches on which end of the range gives the better zero point. Processors guess half of these
// branches wrong, which takes as long as to quantize 64 elements.
static XNN_INLINE struct xnn_qd8_quantization_params xnnpack_sys_row_quantization(float min, float max) {
  if XNN_UNLIKELY(!isfinite(max - min)) {
    return (struct xnn_qd8_quantization_params) {.zero_point = 0, .inv_scale = NAN};
  }
  // The range includes 0.
  const float low = min < 0.0f ? min : 0.0f;
  const float high = max > 0.0f ? max : 0.0f;
  const float scale = low == high ? 1.0f : (float) (INT8_MAX - INT8_MIN) / (high - low);
  const float below = low * scale;
  const float above = high * scale;
  const int32_t from_low = xnnpack_sys_nearest_int8((float) INT8_MIN - below);
  const int32_t from_high = xnnpack_sys_nearest_int8((float) INT8_MAX - above);
  // All bits are set where the zero point of the low end is better.
  const int32_t is_low = -(int32_t) (((float) INT8_MIN + below) + ((float) INT8_MAX + above) > 0.0f);
  return (struct xnn_qd8_quantization_params) {
      .zero_point = (from_low & is_low) | (from_high & ~is_low),
      .inv_scale = 1.0f / scale,
  };
}

#endif
