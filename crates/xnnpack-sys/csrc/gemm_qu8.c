// Matrix products of uint8, with a zero point and one scale for all weights.
//
// XNNPACK widens both sides to 16 bits and takes the zero point off all weights. The instruction that multiplies
// four pairs of bytes and adds them up wants unsigned inputs and signed weights: weights are taken less 128, and
// what their zero point differs from that is multiplied with the sum of a row's inputs, once for all channels.
// Sums are of integers and so the same in any order.
//
// `rows` is a constant wherever these functions are inlined, so that loops over it are unrolled.

#include "gemm_qu8.h"

#include <string.h>

#include "requantize.h"

#define ROWS QU8_GEMM_ROWS
#define CHANNELS QU8_GEMM_CHANNELS
#define DEPTH (1 << QU8_GEMM_LOG2_DEPTH)
#define LANES 16
#define OFFSET 128
#define UNROLL _Pragma("GCC unroll 7")

// The rows of the input, for each position of a kernel.
struct input {
  const uint8_t* const* rows;
  size_t positions;
  // Bytes of a row.
  size_t depth;
  // What to add to an address other than `zero`.
  size_t offset;
  const uint8_t* zero;
};

static XNN_INLINE const uint8_t* row_at(const struct input* input, size_t i) {
  const uint8_t* row = input->rows[i];
  return row == input->zero ? row : row + input->offset;
}

// The first `count` bytes, at most 64, and zeros.
static XNN_INLINE __m512i some_bytes(const uint8_t* from, size_t count) {
  return _mm512_maskz_loadu_epi8(count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX, from);
}

static XNN_INLINE int32_t sum_of_row(size_t rows, const struct input* input, size_t row) {
  __m512i sums = _mm512_setzero_si512();
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from = row_at(input, position * rows + row);
    for (size_t i = 0; i < input->depth; i += 64) {
      sums = _mm512_dpbusd_epi32(sums, some_bytes(from + i, input->depth - i), _mm512_set1_epi8(1));
    }
  }
  return _mm512_reduce_add_epi32(sums);
}

// Adds products with 16 channels, or with 32.
static XNN_INLINE void multiply_step(
    size_t rows, size_t halves, const __m512i inputs[ROWS], const int8_t* weights, __m512i sums[ROWS][2])
{
  UNROLL for (size_t half = 0; half < halves; half++) {
    const __m512i unsigned_weights = _mm512_loadu_si512(weights + half * LANES * DEPTH);
    const __m512i w = _mm512_xor_si512(unsigned_weights, _mm512_set1_epi8((int8_t) OFFSET));
    UNROLL for (size_t row = 0; row < rows; row++) {
      sums[row][half] = _mm512_dpbusd_epi32(sums[row][half], inputs[row], w);
    }
  }
}

// Returns the weights of the next channels.
static XNN_INLINE const int8_t* multiply(
    size_t rows, size_t halves, const struct input* input, const int8_t* weights, __m512i sums[ROWS][2])
{
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * rows + row);
    }
    __m512i inputs[ROWS];
    size_t left = input->depth;
    for (; left >= DEPTH; left -= DEPTH) {
      UNROLL for (size_t row = 0; row < rows; row++) {
        int32_t four;
        memcpy(&four, from[row], sizeof(four));
        inputs[row] = _mm512_set1_epi32(four);
        from[row] += DEPTH;
      }
      multiply_step(rows, halves, inputs, weights, sums);
      weights += CHANNELS * DEPTH;
    }
    if (left != 0) {
      UNROLL for (size_t row = 0; row < rows; row++) {
        inputs[row] = _mm512_broadcastd_epi32(_mm512_castsi512_si128(some_bytes(from[row], left)));
      }
      multiply_step(rows, halves, inputs, weights, sums);
      weights += CHANNELS * DEPTH;
    }
  }
  return weights;
}

static XNN_INLINE void product(
    size_t rows, size_t mr, size_t nc, const struct input* input, const void* weights, uint8_t* c, size_t cm_stride,
    size_t cn_stride, const union xnn_qu8_conv_minmax_params* params)
{
  const struct requantization to = requantization(
      params->fp32_scalar.output_zero_point, params->fp32_scalar.output_min, params->fp32_scalar.output_max);
  const __m512 scale = _mm512_set1_ps(params->fp32_scalar.scale);
  const int32_t offset = OFFSET - params->fp32_scalar.kernel_zero_point;
  __m512i offsets[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    offsets[row] = _mm512_set1_epi32(offset == 0 ? 0 : offset * sum_of_row(rows, input, row));
  }
  for (;;) {
    __m512i sums[ROWS][2];
    UNROLL for (size_t row = 0; row < rows; row++) {
      sums[row][0] = _mm512_add_epi32(_mm512_loadu_si512(weights), offsets[row]);
      sums[row][1] = _mm512_add_epi32(_mm512_loadu_si512((const int32_t*) weights + LANES), offsets[row]);
    }
    const int8_t* bytes = (const int8_t*) ((const int32_t*) weights + CHANNELS);
    weights = nc > LANES ? multiply(rows, 2, input, bytes, sums) : multiply(rows, 1, input, bytes, sums);
    const __mmask32 lanes = nc < CHANNELS ? (UINT32_C(1) << nc) - 1 : UINT32_MAX;
    UNROLL for (size_t row = 0; row < rows; row++) {
      if (row < mr) {
        uint8_t* output = c + row * cm_stride;
        requantize(&to, sums[row][0], scale, output, lanes);
        requantize(&to, sums[row][1], scale, output + LANES, lanes >> LANES);
      }
    }
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    c += cn_stride;
  }
}

static XNN_INLINE void gemm(
    size_t rows, size_t mr, size_t nc, size_t kc, const uint8_t* a, size_t a_stride, const void* w, uint8_t* c,
    size_t cm_stride, size_t cn_stride, const union xnn_qu8_conv_minmax_params* params)
{
  const uint8_t* from[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    from[row] = a + (row < mr ? row : mr - 1) * a_stride;
  }
  const struct input input = {.rows = from, .positions = 1, .depth = kc};
  product(rows, mr, nc, &input, w, c, cm_stride, cn_stride, params);
}

static XNN_INLINE void igemm(
    size_t rows, size_t mr, size_t nc, size_t kc, size_t ks, const uint8_t** a, const void* w, uint8_t* c,
    size_t cm_stride, size_t cn_stride, size_t a_offset, const uint8_t* zero,
    const union xnn_qu8_conv_minmax_params* params)
{
  const struct input input = {
      .rows = a, .positions = ks / (rows * sizeof(void*)), .depth = kc, .offset = a_offset, .zero = zero};
  product(rows, mr, nc, &input, w, c, cm_stride, cn_stride, params);
}

QU8_GEMM(xnnpack_sys_qu8_gemm_1x32c4) {
  gemm(1, mr, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params);
}

QU8_GEMM(xnnpack_sys_qu8_gemm_7x32c4) {
  gemm(ROWS, mr, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params);
}

QU8_IGEMM(xnnpack_sys_qu8_igemm_1x32c4) {
  igemm(1, mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params);
}

QU8_IGEMM(xnnpack_sys_qu8_igemm_7x32c4) {
  igemm(ROWS, mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params);
}
