// Maximum and mean of windows of few floats, 16 channels at a time. XNNPACK takes four channels, and nine elements of each window,
// repeating the last ones. It computes windows of other sizes; results are the same. The maximum ignores NaN, as in TFLite's
// reference kernels, and the mean propagates it.

#include "ukernels/pool_f32.h"

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "xnnpack/avgpool.h"
#include "xnnpack/maxpool.h"

#define LANES 16
// Addresses that XNNPACK's functions take; a window may have fewer elements.
#define PASS 9
#define UNROLL _Pragma("GCC unroll 9")

static XNN_INLINE __mmask16 lanes_of(size_t count) { return count < LANES ? (__mmask16) ((1 << count) - 1) : 0xFFFF; }

// `elements` is a constant wherever this is inlined.
static XNN_INLINE void store_largest(
    size_t elements, size_t channels, const float** input, size_t input_offset, float* output, __m512 low, __m512 high)
{
  const float* at[PASS];
  UNROLL for (size_t i = 0; i < elements; i++) {
    at[i] = (const float*) ((uintptr_t) input[i] + input_offset);
  }
  for (size_t channel = 0; channel < channels; channel += LANES) {
    const __mmask16 lanes = lanes_of(channels - channel);
    __m512 most = low;
    UNROLL for (size_t i = 0; i < elements; i++) {
      // The second operand if either is NaN.
      most = _mm512_max_ps(_mm512_maskz_loadu_ps(lanes, at[i] + channel), most);
    }
    _mm512_mask_storeu_ps(output + channel, lanes, _mm512_min_ps(most, high));
  }
}

bool xnnpack_sys_f32_maxpool_of_few(
    size_t output_pixels, size_t pooling_elements, size_t channels, const float** input, size_t input_offset,
    float* output, size_t input_increment, size_t output_increment, const union xnn_f32_minmax_params* params)
{
  const __m512 low = _mm512_set1_ps(params->scalar.min);
  const __m512 high = _mm512_set1_ps(params->scalar.max);
  for (; output_pixels > 0; output_pixels--) {
    switch (pooling_elements) {
      case 2: store_largest(2, channels, input, input_offset, output, low, high); break;
      case 3: store_largest(3, channels, input, input_offset, output, low, high); break;
      case 4: store_largest(4, channels, input, input_offset, output, low, high); break;
      case 9: store_largest(9, channels, input, input_offset, output, low, high); break;
      default: return false;
    }
    input = (const float**) ((uintptr_t) (input + PASS) + input_increment);
    output = (float*) ((uintptr_t) (output + channels) + output_increment);
  }
  return true;
}

// Adds in the order of XNNPACK's function.
static XNN_INLINE __m512 sum(size_t elements, const __m512 x[PASS]) {
  const __m512 pair = _mm512_add_ps(x[0], x[1]);
  switch (elements) {
    case 2: return pair;
    case 3: return _mm512_add_ps(x[2], pair);
    case 4: return _mm512_add_ps(_mm512_add_ps(x[2], x[3]), pair);
    default: {
      const __m512 front = _mm512_add_ps(_mm512_add_ps(x[2], x[3]), _mm512_add_ps(x[4], x[5]));
      return _mm512_add_ps(front, _mm512_add_ps(_mm512_add_ps(pair, x[8]), _mm512_add_ps(x[6], x[7])));
    }
  }
}

static XNN_INLINE void store_mean(
    size_t elements, size_t channels, const float** input, size_t input_offset, const float* zero, float* output,
    const struct xnn_f32_scaleminmax_params* params)
{
  const __m512 low = _mm512_set1_ps(params->scalar.min);
  const __m512 high = _mm512_set1_ps(params->scalar.max);
  const float* at[PASS];
  UNROLL for (size_t i = 0; i < elements; i++) {
    at[i] = input[i] == zero ? zero : (const float*) ((uintptr_t) input[i] + input_offset);
  }
  for (size_t channel = 0; channel < channels; channel += LANES) {
    const __mmask16 lanes = lanes_of(channels - channel);
    __m512 x[PASS];
    UNROLL for (size_t i = 0; i < elements; i++) {
      x[i] = _mm512_maskz_loadu_ps(lanes, at[i] + channel);
    }
    const __m512 mean = _mm512_mul_ps(sum(elements, x), _mm512_set1_ps(params->scalar.scale));
    _mm512_mask_storeu_ps(output + channel, lanes, clamp(mean, low, high));
  }
}

void xnnpack_sys_f32_avgpool_minmax_ukernel_9x__avx512f(
    size_t output_pixels, size_t kernel_elements, size_t channels, const float** input, size_t input_offset,
    const float* zero, float* output, size_t input_increment, size_t output_increment,
    const struct xnn_f32_scaleminmax_params* params)
{
  assert(output_pixels != 0 && kernel_elements != 0 && channels != 0);
  for (; output_pixels > 0; output_pixels--) {
    switch (kernel_elements) {
      case 2: store_mean(2, channels, input, input_offset, zero, output, params); break;
      case 3: store_mean(3, channels, input, input_offset, zero, output, params); break;
      case 4: store_mean(4, channels, input, input_offset, zero, output, params); break;
      case 9: store_mean(9, channels, input, input_offset, zero, output, params); break;
      default:
        xnn_f32_avgpool_minmax_ukernel_9x__sse_c4(
            output_pixels, kernel_elements, channels, input, input_offset, zero, output, input_increment,
            output_increment, params);
        return;
    }
    input = (const float**) ((uintptr_t) input + input_increment);
    output = (float*) ((uintptr_t) (output + channels) + output_increment);
  }
}
