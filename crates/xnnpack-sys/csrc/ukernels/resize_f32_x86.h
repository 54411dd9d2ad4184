// Bilinear interpolation between four pixels of floats: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernels take vectors of four channels, and the rest in steps; here the last vector of a pixel overlaps the one before it.
// They compute the few channels that are less than a vector. Results are the same.

#include "ukernels/resize_f32.h"

#include <stdint.h>

#include <immintrin.h>

#include "ukernels/with_isa.h"
#include "xnnpack/common.h"
#include "xnnpack/ibilinear.h"

// With SSE4.1, GCC 12 would compute addresses as vectors, and take these apart again.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__AVX__)
#pragma GCC optimize("no-tree-vectorize")
#endif

// Two vectors at a time gain 7 % with SSE4.1, and lose as much with AVX.
#define IN_PAIRS(lanes) ((lanes) == 4)

// `between` rounds products before it adds them, as XNNPACK's microkernels do.
#define INTERPOLATION(name, vector, lanes, prefix) \
  static XNN_INLINE vector between_##name(vector from, vector to, vector weight) { \
    return prefix##_add_ps(from, prefix##_mul_ps(prefix##_sub_ps(to, from), weight)); \
  } \
  static XNN_INLINE void some_##name(const float* const corners[4], size_t at, vector across, vector down, float* output) { \
    const vector above = between_##name( \
        prefix##_loadu_ps(corners[0] + at), prefix##_loadu_ps(corners[1] + at), across); \
    const vector below = between_##name( \
        prefix##_loadu_ps(corners[2] + at), prefix##_loadu_ps(corners[3] + at), across); \
    prefix##_storeu_ps(output + at, between_##name(above, below, down)); \
  } \
  static XNN_INLINE void name(const float* const corners[4], size_t channels, const float* weights, float* output) { \
    const vector across = prefix##_set1_ps(weights[0]); \
    const vector down = prefix##_set1_ps(weights[1]); \
    const size_t last = channels - lanes; \
    size_t at = 0; \
    for (; IN_PAIRS(lanes) && at + 2 * lanes <= channels; at += 2 * lanes) { \
      some_##name(corners, at, across, down, output); \
      some_##name(corners, at + lanes, across, down, output); \
    } \
    for (; at < last; at += lanes) { \
      some_##name(corners, at, across, down, output); \
    } \
    if (!IN_PAIRS(lanes) || at != channels) { \
      some_##name(corners, last, across, down, output); \
    } \
  }

#ifdef __AVX__
#define LANES 8
INTERPOLATION(by_vector, __m256, LANES, _mm256)
#else
#define LANES 4
INTERPOLATION(by_vector, __m128, LANES, _mm)
#endif
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
  by_vector(corners, channels, weights, output);
}

F32_IBILINEAR(WITH_ISA(xnnpack_sys_f32_ibilinear_ukernel__)) {
  const size_t count = channels / sizeof(float);
  if (count < LANES) {
    xnn_f32_ibilinear_ukernel__sse_c8(pixels, channels, input, input_offset, weights, output, output_increment);
    return;
  }
  do {
    const float* corners[4];
    // Without this the compiler keeps the addresses in memory.
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
      corners[i] = (const float*) ((uintptr_t) input[i] + input_offset);
    }
    interpolate(corners, count, weights, output);
    input += 4;
    weights += 2;
    output = (float*) ((uintptr_t) (output + count) + output_increment);
  } while (--pixels != 0);
}
