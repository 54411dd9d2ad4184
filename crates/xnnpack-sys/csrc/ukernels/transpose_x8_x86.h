// Transpositions of bytes: included by a file for each instruction set, which defines `ISA`, and `SMALLER`, the microkernel for a matrix
// smaller than 16 x 16, or than a vector in both directions.
//
// Sixteen vectors hold a square of 16 x 16 bytes in each lane of 128 bits, and are transposed together. XNNPACK reads and writes a lane
// at a time. Channels of an image and its pixels are often a power of two apart, so that the lines of several rows evict each other from
// the first-level cache: here whole vectors are written if rows of the output are further apart than those of the input, and read
// otherwise. With AVX512 these are whole lines. Squares at the ends of rows and columns overlap those before.

#include "ukernels/transpose_x8.h"

#include <stdbool.h>

#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"
#include "xnnpack/transpose.h"

enum { SIDE = 16, LANES = sizeof(vint) / SIDE };

#define UNROLL _Pragma("GCC unroll 16")

struct matrix {
  const uint8_t* input;
  uint8_t* output;
  size_t input_stride;
  size_t output_stride;
};

#ifdef __AVX512BW__
static XNN_INLINE vint load_lanes(const uint8_t* from, size_t stride) {
  vint all = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*) from));
  all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i*) (from + stride)), 1);
  all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i*) (from + 2 * stride)), 2);
  return _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i*) (from + 3 * stride)), 3);
}
static XNN_INLINE void store_lanes(uint8_t* to, size_t stride, vint all) {
  _mm_storeu_si128((__m128i*) to, _mm512_castsi512_si128(all));
  _mm_storeu_si128((__m128i*) (to + stride), _mm512_extracti32x4_epi32(all, 1));
  _mm_storeu_si128((__m128i*) (to + 2 * stride), _mm512_extracti32x4_epi32(all, 2));
  _mm_storeu_si128((__m128i*) (to + 3 * stride), _mm512_extracti32x4_epi32(all, 3));
}
#else
static XNN_INLINE vint load_lanes(const uint8_t* from, size_t stride) {
  const __m256i front = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i*) from));
  return _mm256_inserti128_si256(front, _mm_loadu_si128((const __m128i*) (from + stride)), 1);
}
static XNN_INLINE void store_lanes(uint8_t* to, size_t stride, vint all) {
  _mm_storeu_si128((__m128i*) to, _mm256_castsi256_si128(all));
  _mm_storeu_si128((__m128i*) (to + stride), _mm256_extracti128_si256(all, 1));
}
#endif

// Transposes the square of each lane. Vectors that are half of a square apart are interleaved: this moves the highest bit of a byte's
// row behind its column's lowest, and that column's highest bit behind the row's lowest. Row and column are exchanged once each of four
// bits has moved.
static XNN_INLINE void transpose_squares(vint rows[SIDE]) {
  UNROLL for (size_t bit = 1; bit < SIDE; bit *= 2) {
    vint next[SIDE];
    UNROLL for (size_t i = 0; i < SIDE / 2; i++) {
      next[2 * i] = VINT(unpacklo_epi8, rows[i], rows[i + SIDE / 2]);
      next[2 * i + 1] = VINT(unpackhi_epi8, rows[i], rows[i + SIDE / 2]);
    }
    UNROLL for (size_t i = 0; i < SIDE; i++) {
      rows[i] = next[i];
    }
  }
}

// Writes whole vectors: the squares are below each other in the input.
static XNN_INLINE void transpose_column(const struct matrix* matrix, size_t row, size_t column) {
  const uint8_t* const from = matrix->input + row * matrix->input_stride + column;
  uint8_t* const to = matrix->output + column * matrix->output_stride + row;
  vint rows[SIDE];
  UNROLL for (size_t i = 0; i < SIDE; i++) {
    rows[i] = load_lanes(from + i * matrix->input_stride, SIDE * matrix->input_stride);
  }
  transpose_squares(rows);
  UNROLL for (size_t i = 0; i < SIDE; i++) {
    vint_store(to + i * matrix->output_stride, rows[i]);
  }
}

// Reads whole vectors: the squares are beside each other in the input.
static XNN_INLINE void transpose_row(const struct matrix* matrix, size_t row, size_t column) {
  const uint8_t* const from = matrix->input + row * matrix->input_stride + column;
  uint8_t* const to = matrix->output + column * matrix->output_stride + row;
  vint rows[SIDE];
  UNROLL for (size_t i = 0; i < SIDE; i++) {
    rows[i] = vint_load(from + i * matrix->input_stride);
  }
  transpose_squares(rows);
  UNROLL for (size_t i = 0; i < SIDE; i++) {
    store_lanes(to + i * matrix->output_stride, SIDE * matrix->output_stride, rows[i]);
  }
}

// The position `step` behind `at`, or the last one that has `step` elements.
static XNN_INLINE size_t next(size_t at, size_t step, size_t count) {
  return at + step >= count ? count : min(at + step, count - step);
}

// Neighbouring vectors of a row of the output, or of the input, follow each other, because they may share a line.
X8_TRANSPOSE(WITH_ISA(xnnpack_sys_x8_transposec_ukernel__)) {
  const struct matrix matrix = {
      .input = input, .output = output, .input_stride = input_stride, .output_stride = output_stride};
  const bool is_high = height >= LANES * SIDE && width >= SIDE;
  const bool is_wide = width >= LANES * SIDE && height >= SIDE;
  if (is_high && (!is_wide || output_stride >= input_stride)) {
    for (size_t column = 0; column < width; column = next(column, SIDE, width)) {
      for (size_t row = 0; row < height; row = next(row, LANES * SIDE, height)) {
        transpose_column(&matrix, row, column);
      }
    }
  } else if (is_wide) {
    for (size_t row = 0; row < height; row = next(row, SIDE, height)) {
      for (size_t column = 0; column < width; column = next(column, LANES * SIDE, width)) {
        transpose_row(&matrix, row, column);
      }
    }
  } else {
    SMALLER(input, output, input_stride, output_stride, width, height);
  }
}
