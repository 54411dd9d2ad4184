// Maxima of windows of few floats, see `pool_f32.h`: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK takes four channels, and nine elements of each window, repeating the last ones. It computes windows of other sizes; results
// are the same. NaN is ignored, as in TFLite's reference kernels.

#include <assert.h>
#include <stdint.h>

#include "ukernels/pool_f32.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/maxpool.h"

#define UNROLL _Pragma("GCC unroll 9")

// Computes up to a vector of channels.
static XNN_INLINE void store_some(
    size_t elements, const float* const at[POOL_PASS], size_t channel, size_t count, float* output, vfloat low, vfloat high)
{
  vfloat most = low;
  UNROLL for (size_t i = 0; i < elements; i++) {
    // The second operand if either is NaN.
    most = VINT(max_ps, vfloat_load(at[i] + channel, count), most);
  }
  vfloat_store(output + channel, VINT(min_ps, most, high), count);
}

// `elements` is a constant wherever this is inlined.
static XNN_INLINE void store_largest(
    size_t elements, size_t channels, const float** input, size_t input_offset, float* output, vfloat low, vfloat high)
{
  const float* at[POOL_PASS];
  UNROLL for (size_t i = 0; i < elements; i++) {
    at[i] = (const float*) ((uintptr_t) input[i] + input_offset);
  }
  size_t channel = 0;
  for (; channels - channel >= VECTOR_LANES; channel += VECTOR_LANES) {
    store_some(elements, at, channel, VECTOR_LANES, output, low, high);
  }
  if (channel != channels) {
    store_some(elements, at, channel, channels - channel, output, low, high);
  }
}

F32_MAXPOOL(WITH_ISA(xnnpack_sys_f32_maxpool_minmax_ukernel__)) {
  assert(output_pixels != 0 && pooling_elements != 0 && channels != 0);
  const vfloat low = VINT(set1_ps, params->scalar.min);
  const vfloat high = VINT(set1_ps, params->scalar.max);
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
