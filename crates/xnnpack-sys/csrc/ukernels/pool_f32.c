// Maximum of windows of few floats, 16 channels at a time. XNNPACK takes four channels, and nine elements of each window, repeating
// the last ones. It computes windows of other sizes; results are the same. NaN is ignored, as in TFLite's reference kernels.

#include "ukernels/pool_f32.h"

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "xnnpack/maxpool.h"

#define LANES 16
#define UNROLL _Pragma("GCC unroll 9")

static XNN_INLINE __mmask16 lanes_of(size_t count) { return count < LANES ? (__mmask16) ((1 << count) - 1) : 0xFFFF; }

// `elements` is a constant wherever this is inlined.
static XNN_INLINE void store_largest(
    size_t elements, size_t channels, const float** input, size_t input_offset, float* output, __m512 low, __m512 high)
{
  const float* at[POOL_PASS];
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

void xnnpack_sys_f32_maxpool_minmax_ukernel__avx512f(
    size_t output_pixels, size_t pooling_elements, size_t channels, const float** input, size_t input_offset,
    float* output, size_t input_increment, size_t output_increment, const union xnn_f32_minmax_params* params)
{
  assert(output_pixels != 0 && pooling_elements != 0 && channels != 0);
  const __m512 low = _mm512_set1_ps(params->scalar.min);
  const __m512 high = _mm512_set1_ps(params->scalar.max);
  for (; output_pixels > 0; output_pixels--) {
    switch (pooling_elements) {
      case 2: store_largest(2, channels, input, input_offset, output, low, high); break;
      case 3: store_largest(3, channels, input, input_offset, output, low, high); break;
      case 4: store_largest(4, channels, input, input_offset, output, low, high); break;
      case 9: store_largest(9, channels, input, input_offset, output, low, high); break;
      default:
        xnn_f32_maxpool_minmax_ukernel_9p8x__sse_c4(
            output_pixels, pooling_elements, channels, input, input_offset, output, input_increment, output_increment,
            params);
        return;
    }
    input = (const float**) ((uintptr_t) (input + POOL_PASS) + input_increment);
    output = (float*) ((uintptr_t) (output + channels) + output_increment);
  }
}
