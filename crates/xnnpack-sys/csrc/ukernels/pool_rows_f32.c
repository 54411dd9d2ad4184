// Maximum of a row of floats with its index.
//
// Rows are pooled as images of one channel. XNNPACK's microkernels take four channels at a time: three of four lanes are idle, in
// passes of eight elements through a buffer. Here vectors have neighbouring elements of a row. XNNPACK computes other windows; results
// are the same.

#include "ukernels/pool_rows_f32.h"

#include <stdbool.h>

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "xnnpack/argmaxpool.h"
#include "xnnpack/math.h"

#define LANES 16

// Whether a window is a row of more than one element. Addresses are those of one column of the window after the other, at equal
// steps, or steps of 0 beyond the image.
static XNN_INLINE bool is_row(const float** input, size_t length, size_t channels) {
  const uintptr_t first = (uintptr_t) input[0];
  return channels == 1 && length > 1 && (uintptr_t) input[1] == first + sizeof(float) &&
      (uintptr_t) input[length - 1] == first + (length - 1) * sizeof(float);
}

struct row {
  const float* elements;
  // Elements in whole vectors, and the rest.
  size_t whole;
  __mmask16 rest;
};

static XNN_INLINE struct row row_at(const float** input, size_t input_offset, size_t length) {
  const size_t whole = length / LANES * LANES;
  return (struct row) {
      .elements = (const float*) ((uintptr_t) input[0] + input_offset),
      .whole = whole,
      .rest = (1 << (length - whole)) - 1,
  };
}

// Returns the maximum of `least` and the elements of a row that are not NaN.
static XNN_INLINE float largest(const struct row* row, float least) {
  const __m512 first = _mm512_set1_ps(least);
  __m512 most = first;
  for (size_t i = 0; i < row->whole; i += LANES) {
    // The second operand if either is NaN.
    most = _mm512_max_ps(_mm512_loadu_ps(row->elements + i), most);
  }
  most = _mm512_max_ps(_mm512_mask_loadu_ps(first, row->rest, row->elements + row->whole), most);
  return _mm512_reduce_max_ps(most);
}

// Returns the first index of `value`, or 0 if it is NaN.
static XNN_INLINE size_t position(const struct row* row, float value) {
  const __m512 values = _mm512_set1_ps(value);
  for (size_t i = 0; i < row->whole; i += LANES) {
    const __mmask16 found = _mm512_cmpeq_ps_mask(_mm512_loadu_ps(row->elements + i), values);
    if (found != 0) {
      return i + math_ctz_u32(found);
    }
  }
  const __m512 last = _mm512_maskz_loadu_ps(row->rest, row->elements + row->whole);
  const __mmask16 found = _mm512_mask_cmpeq_ps_mask(row->rest, last, values);
  return found != 0 ? row->whole + math_ctz_u32(found) : 0;
}

void xnnpack_sys_f32_argmaxpool_ukernel__avx512f(
    size_t output_pixels, size_t pooling_elements, size_t channels, const float** input, size_t input_offset,
    float* accumulation_buffer, uint32_t* index_buffer, float* output, uint32_t* index, size_t input_increment,
    size_t output_increment)
{
  assert(output_pixels != 0 && pooling_elements != 0 && channels != 0);
  if (output_pixels == 1 && is_row(input, pooling_elements, channels)) {
    const struct row row = row_at(input, input_offset, pooling_elements);
    // NaN is the maximum if it is the first element, as in TFLite's ARG_MAX.
    *output = largest(&row, row.elements[0]);
    *index = (uint32_t) position(&row, *output);
    return;
  }
  xnn_f32_argmaxpool_ukernel_9p8x__sse2_c4(
      output_pixels, pooling_elements, channels, input, input_offset, accumulation_buffer, index_buffer, output, index,
      input_increment, output_increment);
}
