// Bilinear interpolation between four pixels of floats: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernels take vectors of four channels, and the rest in steps; here the last vector of a pixel overlaps the one before it.
// Results are the same.

#include "ukernels/resize_f32.h"

#include <stdint.h>

#include <immintrin.h>

#include "ukernels/with_isa.h"
#include "xnnpack/common.h"
#include "xnnpack/ibilinear.h"

// `between` rounds products before it adds them, as XNNPACK's microkernels do.
#define INTERPOLATION(name, vector, lanes, prefix) \
  static XNN_INLINE vector between_##name(vector from, vector to, vector weight) { \
    return prefix##_add_ps(from, prefix##_mul_ps(prefix##_sub_ps(to, from), weight)); \
  } \
  static XNN_INLINE void name(const float* const corners[4], size_t channels, const float* weights, float* output) { \
    const float* const above_left = corners[0]; \
    const float* const above_right = corners[1]; \
    const float* const below_left = corners[2]; \
    const float* const below_right = corners[3]; \
    const vector across = prefix##_set1_ps(weights[0]); \
    const vector down = prefix##_set1_ps(weights[1]); \
    for (size_t at = 0; at < channels; at += lanes) { \
      at = at + lanes > channels ? channels - lanes : at; \
      const vector above = between_##name( \
          prefix##_loadu_ps(above_left + at), prefix##_loadu_ps(above_right + at), across); \
      const vector below = between_##name( \
          prefix##_loadu_ps(below_left + at), prefix##_loadu_ps(below_right + at), across); \
      prefix##_storeu_ps(output + at, between_##name(above, below, down)); \
    } \
  }

INTERPOLATION(by_8, __m256, 8, _mm256)
#ifdef __AVX512F__
INTERPOLATION(by_16, __m512, 16, _mm512)
#endif

static XNN_INLINE void interpolate(const float* const corners[4], size_t channels, const float* weights, float* output) {
#ifdef __AVX512F__
  // Stores of 16 floats that cross a cache line take longer than two of 8.
  if (channels % 16 == 0) {
    by_16(corners, channels, weights, output);
    return;
  }
#endif
  by_8(corners, channels, weights, output);
}

F32_IBILINEAR(WITH_ISA(xnnpack_sys_f32_ibilinear_ukernel__)) {
  const size_t count = channels / sizeof(float);
  if (count < 8) {
    xnn_f32_ibilinear_ukernel__sse_c8(pixels, channels, input, input_offset, weights, output, output_increment);
    return;
  }
  do {
    const float* corners[4];
    for (size_t i = 0; i < 4; i++) {
      corners[i] = (const float*) ((uintptr_t) input[i] + input_offset);
    }
    interpolate(corners, count, weights, output);
    input += 4;
    weights += 2;
    output = (float*) ((uintptr_t) (output + count) + output_increment);
  } while (--pixels != 0);
}
