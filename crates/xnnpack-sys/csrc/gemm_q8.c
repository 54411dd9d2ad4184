// Matrix products of 8-bit integers.
//
// The instruction that multiplies four pairs of bytes and adds them up wants unsigned inputs and signed weights.
// - uint8: XNNPACK widens both sides to 16 bits and takes the zero point off all weights. Here weights are taken
//   less 128, and what their zero point differs from that is multiplied with the sum of a row's inputs, once for
//   all channels.
// - int8: inputs are taken with 128 added, which packing takes off the bias. XNNPACK has such microkernels, which
//   multiply eight inputs at a time: too many for the three colours of a first layer.
// Sums are of integers and so the same in any order.
//
// `kind`, `rows` and `halves` are constants wherever these functions are inlined, so that loops over them are
// unrolled and arrays become registers.

#include "gemm_q8.h"

#include <string.h>

#include "q8.h"

#define ROWS Q8_GEMM_ROWS
#define CHANNELS Q8_GEMM_CHANNELS
#define DEPTH (1 << Q8_GEMM_LOG2_DEPTH)
#define LANES 16
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

struct output {
  uint8_t* at;
  // From row to row, and from one tile of channels to the next.
  size_t row_stride;
  size_t tile_stride;
  struct requantization requantization;
};

static XNN_INLINE const uint8_t* row_at(const struct input* input, size_t i) {
  return input_at(input->rows[i], input->zero, input->offset);
}

static XNN_INLINE int32_t four_bytes(const uint8_t* from) {
  int32_t four;
  memcpy(&four, from, sizeof(four));
  return four;
}

// The bits of fewer bytes than four.
static XNN_INLINE int32_t bits(size_t bytes) { return (1 << 8 * bytes) - 1; }

static XNN_INLINE int32_t sum_of_row(size_t rows, const struct input* input, size_t row) {
  if (input->depth < DEPTH) {
    __m128i sum = _mm_setzero_si128();
    for (size_t position = 0; position < input->positions; position++) {
      const int32_t bytes = four_bytes(row_at(input, position * rows + row)) & bits(input->depth);
      sum = _mm_dpbusd_epi32(sum, _mm_cvtsi32_si128(bytes), _mm_set1_epi8(1));
    }
    return _mm_cvtsi128_si32(sum);
  }
  __m512i sums = _mm512_setzero_si512();
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from = row_at(input, position * rows + row);
    for (size_t i = 0; i < input->depth; i += 64) {
      const size_t left = input->depth - i;
      const __mmask64 some = left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
      sums = _mm512_dpbusd_epi32(sums, _mm512_maskz_loadu_epi8(some, from + i), _mm512_set1_epi8(1));
    }
  }
  return _mm512_reduce_add_epi32(sums);
}

// Adds products of four inputs, or of those whose bits are in `some`, with 16 channels, or with 32. Returns the
// weights of the next inputs.
static XNN_INLINE const int8_t* multiply_step(
    enum kind kind, size_t rows, size_t halves, const uint8_t* from[ROWS], __m512i some, const int8_t* weights,
    __m512i sums[ROWS][2])
{
  const __m512i offset = _mm512_set1_epi8((int8_t) OFFSET);
  __m512i inputs[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    inputs[row] = _mm512_and_si512(_mm512_set1_epi32(four_bytes(from[row])), some);
    if (kind == SIGNED) {
      inputs[row] = _mm512_xor_si512(inputs[row], offset);
    }
    from[row] += DEPTH;
  }
  UNROLL for (size_t half = 0; half < halves; half++) {
    __m512i w = _mm512_loadu_si512(weights + half * LANES * DEPTH);
    if (kind == UNSIGNED) {
      w = _mm512_xor_si512(w, offset);
    }
    UNROLL for (size_t row = 0; row < rows; row++) {
      sums[row][half] = _mm512_dpbusd_epi32(sums[row][half], inputs[row], w);
    }
  }
  return weights + CHANNELS * DEPTH;
}

// Returns what is behind the weights.
static XNN_INLINE const int8_t* multiply(
    enum kind kind, size_t rows, size_t halves, const struct input* input, const int8_t* weights,
    __m512i sums[ROWS][2])
{
  const size_t rest = input->depth % DEPTH;
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * rows + row);
    }
    for (size_t left = input->depth; left >= DEPTH; left -= DEPTH) {
      weights = multiply_step(kind, rows, halves, from, _mm512_set1_epi32(-1), weights, sums);
    }
    if (rest != 0) {
      weights = multiply_step(kind, rows, halves, from, _mm512_set1_epi32(bits(rest)), weights, sums);
    }
  }
  return weights;
}

// `weights_offset` is, for UNSIGNED, 128 less the weights' zero point.
static XNN_INLINE void product(
    enum kind kind, size_t rows, size_t mr, size_t nc, const struct input* input, const void* weights,
    int32_t weights_offset, struct output output)
{
  __m512i offsets[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    const int32_t sum = kind == SIGNED || weights_offset == 0 ? 0 : sum_of_row(rows, input, row);
    offsets[row] = _mm512_set1_epi32(weights_offset * sum);
  }
  for (;;) {
    __m512i sums[ROWS][2];
    UNROLL for (size_t row = 0; row < rows; row++) {
      sums[row][0] = _mm512_add_epi32(_mm512_loadu_si512(weights), offsets[row]);
      sums[row][1] = _mm512_add_epi32(_mm512_loadu_si512((const int32_t*) weights + LANES), offsets[row]);
    }
    const int8_t* bytes = (const int8_t*) ((const int32_t*) weights + CHANNELS);
    bytes = nc > LANES ? multiply(kind, rows, 2, input, bytes, sums) : multiply(kind, rows, 1, input, bytes, sums);
    __m512 scale0 = _mm512_undefined_ps();
    __m512 scale1 = _mm512_undefined_ps();
    if (kind == SIGNED) {
      scale0 = _mm512_loadu_ps(bytes);
      scale1 = _mm512_loadu_ps((const float*) bytes + LANES);
      bytes += CHANNELS * sizeof(float);
    }
    weights = bytes;
    const __mmask32 lanes = nc < CHANNELS ? (UINT32_C(1) << nc) - 1 : UINT32_MAX;
    UNROLL for (size_t row = 0; row < rows; row++) {
      if (row < mr) {
        uint8_t* at = output.at + row * output.row_stride;
        requantize(kind, &output.requantization, sums[row][0], scale0, at, lanes & ALL_LANES);
        if (nc > LANES) {
          requantize(kind, &output.requantization, sums[row][1], scale1, at + LANES, lanes >> LANES);
        }
      }
    }
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    output.at += output.tile_stride;
  }
}

static XNN_INLINE void gemm(
    enum kind kind, size_t rows, size_t mr, size_t nc, size_t kc, const uint8_t* a, size_t a_stride, const void* w,
    int32_t weights_offset, struct output output)
{
  const uint8_t* from[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    from[row] = a + (row < mr ? row : mr - 1) * a_stride;
  }
  const struct input input = {.rows = from, .positions = 1, .depth = kc};
  product(kind, rows, mr, nc, &input, w, weights_offset, output);
}

#define OUTPUT(requantization_of_kind) \
  const struct output output = { \
      .at = (uint8_t*) c, .row_stride = cm_stride, .tile_stride = cn_stride, \
      .requantization = requantization_of_kind(params)}

#define GEMM(kind, rows, weights_offset, requantization_of_kind) \
  OUTPUT(requantization_of_kind); \
  gemm(kind, rows, mr, nc, kc, (const uint8_t*) a, a_stride, w, weights_offset, output)

#define IGEMM(kind, rows_of_tile, weights_offset, requantization_of_kind) \
  OUTPUT(requantization_of_kind); \
  const struct input input = { \
      .rows = (const uint8_t* const*) a, .positions = ks / ((rows_of_tile) * sizeof(void*)), .depth = kc, \
      .offset = a_offset, .zero = (const uint8_t*) zero}; \
  product(kind, rows_of_tile, mr, nc, &input, w, weights_offset, output)

#define WEIGHTS_OFFSET (OFFSET - params->rndnu_scalar.kernel_zero_point)

QU8_GEMM(xnnpack_sys_qu8_gemm_1x32c4) {
  GEMM(UNSIGNED, 1, WEIGHTS_OFFSET, unsigned_requantization);
}

QU8_GEMM(xnnpack_sys_qu8_gemm_7x32c4) {
  GEMM(UNSIGNED, ROWS, WEIGHTS_OFFSET, unsigned_requantization);
}

QU8_IGEMM(xnnpack_sys_qu8_igemm_1x32c4) {
  IGEMM(UNSIGNED, 1, WEIGHTS_OFFSET, unsigned_requantization);
}

QU8_IGEMM(xnnpack_sys_qu8_igemm_7x32c4) {
  IGEMM(UNSIGNED, ROWS, WEIGHTS_OFFSET, unsigned_requantization);
}

QS8_GEMM(xnnpack_sys_qs8_gemm_1x32c4) {
  GEMM(SIGNED, 1, 0, signed_requantization);
}

QS8_GEMM(xnnpack_sys_qs8_gemm_7x32c4) {
  GEMM(SIGNED, ROWS, 0, signed_requantization);
}

QS8_IGEMM(xnnpack_sys_qs8_igemm_1x32c4) {
  IGEMM(SIGNED, 1, 0, signed_requantization);
}

QS8_IGEMM(xnnpack_sys_qs8_igemm_7x32c4) {
  IGEMM(SIGNED, ROWS, 0, signed_requantization);
}
