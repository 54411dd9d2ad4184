// Matrix products of 8-bit integers.
//
// The instruction that multiplies four pairs of bytes and adds the products takes unsigned and signed bytes.
// - uint8: XNNPACK widens both sides to 16 bits and subtracts the zero point from all weights. Here 128 is subtracted from
//   weights, and the difference of their zero point from 128 is multiplied by the sum of a row's inputs, once for all
//   channels.
// - int8: weights are packed with 128 added, and 128 times the sum of a row's inputs is subtracted. XNNPACK's microkernels add 128 to
//   inputs for every two products, which takes a third of their time, as additions replace products. These do so only if a
//   position has few inputs, such as the colours of a first layer: adding is quick, and summing the inputs slow. Packing
//   compensates it in the bias then. For weights that are packed for AMX, which multiplies signed bytes, 128 is added when they
//   are read (`few_rows_q8.h`).
// Sums are of integers, so that any order gives the same result.
//
// `kind`, `shift`, `rows` and `halves` are constants wherever these functions are inlined, so that loops over them are
// unrolled and arrays become registers.

#include "ukernels/gemm_q8.h"

#include <stdbool.h>
#include <string.h>

#include "ukernels/few_rows_q8.h"
#include "ukernels/input_rows.h"
#include "ukernels/unsigned_weights.h"
#include "xnnpack/math.h"

// GCC 12 would copy every sum twice in each step.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-coalesce-vars")
#endif

#define ROWS Q8_GEMM_ROWS
#define CHANNELS Q8_GEMM_CHANNELS
#define DEPTH (1 << Q8_GEMM_LOG2_DEPTH)
#define LANES 16
// Number of sums to which the products of one row are added, minus one.
#define MORE 3
#define UNROLL _Pragma("GCC unroll 7")

// The side of a product to which 128 is added, or from which it is subtracted: weights of SIGNED when they are packed or read, weights
// of UNSIGNED when they are read.
enum shift { INPUTS, WEIGHTS, WEIGHTS_READ };

static XNN_INLINE bool changes_read_weights(enum kind kind, enum shift shift) {
  return kind == UNSIGNED || shift == WEIGHTS_READ;
}

static XNN_INLINE int32_t four_bytes(const uint8_t* from) {
  int32_t four;
  memcpy(&four, from, sizeof(four));
  return four;
}

// Returns the bits of fewer bytes than four.
static XNN_INLINE int32_t bits(size_t bytes) { return (1 << 8 * bytes) - 1; }

// Adds products of four inputs with 16 channels, or with 32. If weights change when they are read, only inputs whose bits are in
// `some` count; otherwise weights of missing inputs are 0.
static XNN_INLINE void multiply_four(
    enum kind kind, enum shift shift, size_t rows, size_t halves, const uint8_t* const from[ROWS], size_t i,
    __m512i some, const int8_t* weights, __m512i sums[][2])
{
  const __m512i offset = _mm512_set1_epi8((int8_t) OFFSET);
  __m512i bytes[2];
  UNROLL for (size_t half = 0; half < halves; half++) {
    bytes[half] = _mm512_loadu_si512(weights + half * LANES * DEPTH);
    if (changes_read_weights(kind, shift)) {
      bytes[half] = _mm512_xor_si512(bytes[half], offset);
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    __m512i inputs = _mm512_set1_epi32(four_bytes(from[row] + i));
    if (changes_read_weights(kind, shift)) {
      inputs = _mm512_and_si512(inputs, some);
    }
    if (shift == INPUTS) {
      inputs = _mm512_xor_si512(inputs, offset);
    }
    UNROLL for (size_t half = 0; half < halves; half++) {
      sums[row][half] =
          add_dot_products(kind == SIGNED && shift != INPUTS, sums[row][half], inputs, bytes[half]);
    }
  }
}

// The sum of a row's inputs times the zero point of packed weights, which is the same for all channels.
struct zero_points {
  // A byte of the weights.
  uint8_t zero_point;
  __m512i of_rows[ROWS];
};

// Returns the address behind the weights of a position. The products of one row are added to several sums in turn, so that they
// depend on each other less.
static XNN_INLINE const int8_t* multiply_position(
    enum kind kind, enum shift shift, size_t rows, size_t halves, const uint8_t* const from[ROWS], size_t depth,
    const int8_t* weights, __m512i sums[ROWS][2], __m512i more[MORE][2])
{
  const size_t rest = changes_read_weights(kind, shift) ? depth % DEPTH : 0;
  const size_t whole = depth - rest;
  const __m512i all = _mm512_set1_epi32(-1);
  size_t i = 0;
  if (rows == 1) {
    for (; i + MORE * DEPTH < whole; i += DEPTH) {
      multiply_four(kind, shift, rows, halves, from, i, all, weights, sums);
      UNROLL for (size_t other = 0; other < MORE; other++) {
        i += DEPTH;
        weights += CHANNELS * DEPTH;
        multiply_four(kind, shift, rows, halves, from, i, all, weights, &more[other]);
      }
      weights += CHANNELS * DEPTH;
    }
  }
  // There is at least one input.
  if (i < whole || (rows > 1 && !changes_read_weights(kind, shift))) {
    do {
      multiply_four(kind, shift, rows, halves, from, i, all, weights, sums);
      weights += CHANNELS * DEPTH;
      i += DEPTH;
    } while (i < whole);
  }
  if (rest != 0) {
    multiply_four(kind, shift, rows, halves, from, whole, _mm512_set1_epi32(bits(rest)), weights, sums);
    weights += CHANNELS * DEPTH;
  }
  return weights;
}

// Returns the address behind the weights.
static XNN_INLINE const int8_t* multiply(
    enum kind kind, enum shift shift, bool is_first, size_t rows, size_t halves, const struct input* input,
    const int8_t* weights, __m512i sums[ROWS][2], struct zero_points* zero_points)
{
  const __m512i zero_point = _mm512_set1_epi8((int8_t) zero_points->zero_point);
  __m512i more[MORE][2];
  UNROLL for (size_t other = 0; other < MORE; other++) {
    more[other][0] = more[other][1] = _mm512_setzero_si512();
  }
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * input->rows_of_position + row);
    }
    if (is_first) {
      add_products_with_one(kind == SIGNED, rows, from, input->depth, zero_point, zero_points->of_rows);
    }
    weights = multiply_position(kind, shift, rows, halves, from, input->depth, weights, sums, more);
  }
  if (rows == 1) {
    UNROLL for (size_t i = 0; i < MORE * halves; i++) {
      sums[0][i % halves] = _mm512_add_epi32(sums[0][i % halves], more[i / halves][i % halves]);
    }
  }
  return weights;
}

// Stores 32 channels of a row.
static XNN_INLINE void store(const struct output* output, size_t row, __m256i bytes, __mmask32 lanes) {
  uint8_t* at = output->place.at + row * output->place.row_stride;
  if (lanes == UINT32_MAX) {
    _mm256_storeu_si256((__m256i*) at, bytes);
  } else {
    _mm256_mask_storeu_epi8(at, lanes, bytes);
  }
}

// Turns sums of products into outputs, two rows at a time: the second may be behind the last.
static XNN_INLINE void store_rows(
    enum kind kind, size_t rows, size_t halves, size_t mr, __m512i sums[ROWS][2], const float* scales,
    const struct output* output, __mmask32 lanes)
{
  __m512 scale[2];
  UNROLL for (size_t half = 0; half < halves; half++) {
    scale[half] = kind == SIGNED ? _mm512_loadu_ps(scales + half * LANES) : _mm512_undefined_ps();
  }
  UNROLL for (size_t row = 0; row < rows; row += halves) {
    if (row >= mr) {
      return;
    }
    if (halves == 1) {
      uint8_t* at = output->place.at + row * output->place.row_stride;
      requantize(kind, &output->requantization, sums[row][0], scale[0], at, (__mmask16) lanes);
      continue;
    }
    const size_t next = row + 1 < rows ? row + 1 : row;
    const __m512i bytes = requantize_two(kind, &output->requantization, sums[row], sums[next], scale);
    store(output, row, _mm512_castsi512_si256(bytes), lanes);
    if (next != row && next < mr) {
      store(output, next, _mm512_extracti64x4_epi64(bytes, 1), lanes);
    }
  }
}

// Computes up to 32 channels, or 16, and returns the weights of the next ones.
static XNN_INLINE const void* tile(
    enum kind kind, enum shift shift, bool is_first, size_t rows, size_t halves, size_t mr, const struct input* input,
    const void* weights, struct zero_points* zero_points, const struct output* output, __mmask32 lanes)
{
  __m512i sums[ROWS][2];
  UNROLL for (size_t row = 0; row < rows; row++) {
    sums[row][0] = _mm512_loadu_si512(weights);
    sums[row][1] = _mm512_loadu_si512((const int32_t*) weights + LANES);
  }
  const int8_t* bytes = (const int8_t*) ((const int32_t*) weights + CHANNELS);
  bytes = multiply(kind, shift, is_first, rows, halves, input, bytes, sums, zero_points);
  if (is_first) {
    spread_sums(rows, input->depth, zero_points->of_rows);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      if (shift != INPUTS) {
        sums[row][half] = _mm512_sub_epi32(sums[row][half], zero_points->of_rows[row]);
      }
    }
  }
  store_rows(kind, rows, halves, mr, sums, (const float*) bytes, output, lanes);
  return kind == SIGNED ? bytes + CHANNELS * sizeof(float) : bytes;
}

static XNN_INLINE void product(
    enum kind kind, enum shift shift, size_t rows, size_t mr, size_t nc, const struct input* input, const void* weights,
    uint8_t zero_point, struct output output)
{
  struct zero_points zero_points = {.zero_point = zero_point};
  UNROLL for (size_t row = 0; row < rows; row++) {
    zero_points.of_rows[row] = _mm512_setzero_si512();
  }
  bool is_first = shift != INPUTS && zero_point != 0;
  for (;;) {
    const __mmask32 lanes = nc < CHANNELS ? (UINT32_C(1) << nc) - 1 : UINT32_MAX;
    if (is_first) {
      weights = nc > LANES ? tile(kind, shift, true, rows, 2, mr, input, weights, &zero_points, &output, lanes)
                           : tile(kind, shift, true, rows, 1, mr, input, weights, &zero_points, &output, lanes);
    } else {
      weights = nc > LANES ? tile(kind, shift, false, rows, 2, mr, input, weights, &zero_points, &output, lanes)
                           : tile(kind, shift, false, rows, 1, mr, input, weights, &zero_points, &output, lanes);
    }
    if (nc <= CHANNELS) {
      return;
    }
    is_first = false;
    nc -= CHANNELS;
    output.place.at += output.place.tile_stride;
  }
}

// Calls `product` with the side that is shifted.
static XNN_INLINE void shift_product(
    enum kind kind, size_t rows, size_t mr, size_t nc, const struct input* input, const void* weights,
    uint8_t zero_point, struct output output)
{
  if (kind == SIGNED && !xnnpack_sys_qs8_shifts_weights(input->depth)) {
    product(kind, INPUTS, rows, mr, nc, input, weights, zero_point, output);
  } else {
    product(kind, WEIGHTS, rows, mr, nc, input, weights, zero_point, output);
  }
}

// Rows behind the last of `mr` repeat it.
static XNN_INLINE void find_rows(size_t rows, size_t mr, const uint8_t* at, size_t stride, const uint8_t* found[ROWS]) {
  UNROLL for (size_t row = 0; row < rows; row++) {
    found[row] = at + (row < mr ? row : mr - 1) * stride;
  }
}

static XNN_INLINE void gemm(
    enum kind kind, size_t rows, size_t mr, size_t nc, size_t kc, const uint8_t* a, size_t a_stride, const void* w,
    uint8_t zero_point, struct output output)
{
  const uint8_t* from[ROWS];
  find_rows(rows, mr, a, a_stride, from);
  const struct input input = {.rows = from, .rows_of_position = rows, .positions = 1, .depth = kc};
  shift_product(kind, rows, mr, nc, &input, w, zero_point, output);
}

// Products that microkernels for AMX pass on. Unless there is one row, there are addresses of at least as many rows as are computed
// at once; the last rows are computed together with some that have been computed before.
static XNN_INLINE void few(
    enum kind kind, size_t nc, const struct amx_input* rows, const void* weights, uint8_t zero_point, struct output output)
{
  const enum shift shift = kind == SIGNED ? WEIGHTS_READ : WEIGHTS;
  uint8_t* const to = output.place.at;
  const uint8_t* from[ROWS];
  struct input input = {
      .rows_of_position = rows->places_of_position, .positions = rows->positions, .depth = rows->depth,
      .offset = rows->offset, .zero = rows->zero, .padding = rows->zero};
  if (rows->rows == 1) {
    from[0] = rows->at;
    input.rows = rows->places == NULL ? from : rows->places;
    product(kind, shift, 1, 1, nc, &input, weights, zero_point, output);
    return;
  }
  for (size_t next = 0; next < rows->rows; next += ROWS) {
    size_t first = next;
    if (rows->places == NULL) {
      find_rows(ROWS, rows->rows - first, rows->at + first * rows->stride, rows->stride, from);
      input.rows = from;
    } else {
      first = min(next, rows->places_of_position - ROWS);
      input.rows = rows->places + first;
    }
    output.place.at = to + first * output.place.row_stride;
    product(kind, shift, ROWS, min(rows->rows - first, ROWS), nc, &input, weights, zero_point, output);
  }
}

// Zero point of weights from which 128 was subtracted.
#define WEIGHTS_ZERO_POINT ((uint8_t) (params->rndnu_scalar.kernel_zero_point ^ OFFSET))

void xnnpack_sys_qu8_few_rows(
    size_t nc, const struct amx_input* rows, const void* weights, struct place to,
    const union xnn_qu8_conv_minmax_params* params)
{
  few(UNSIGNED, nc, rows, weights, WEIGHTS_ZERO_POINT, (struct output) {to, unsigned_requantization(params)});
}

void xnnpack_sys_qs8_few_rows(
    size_t nc, const struct amx_input* rows, const void* weights, struct place to,
    const union xnn_qs8_qc8w_conv_minmax_params* params)
{
  few(SIGNED, nc, rows, weights, OFFSET, (struct output) {to, signed_requantization(params)});
}

#define OUTPUT(requantization_of_kind) \
  const struct output output = { \
      .place = {.at = (uint8_t*) c, .row_stride = cm_stride, .tile_stride = cn_stride}, \
      .requantization = requantization_of_kind(params)}

#define GEMM(kind, rows, zero_point, requantization_of_kind) \
  ASSERT_GEMM(rows, 1); \
  OUTPUT(requantization_of_kind); \
  gemm(kind, rows, mr, nc, kc, (const uint8_t*) a, a_stride, w, zero_point, output)

#define IGEMM(kind, rows_of_tile, zero_point, requantization_of_kind) \
  ASSERT_IGEMM(rows_of_tile, 1); \
  OUTPUT(requantization_of_kind); \
  const struct input input = { \
      .rows = (const uint8_t* const*) a, .rows_of_position = rows_of_tile, \
      .positions = ks / ((rows_of_tile) * sizeof(void*)), .depth = kc, .offset = a_offset, .zero = (const uint8_t*) zero, \
      .padding = (const uint8_t*) zero}; \
  shift_product(kind, rows_of_tile, mr, nc, &input, w, zero_point, output)

QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_1x32c4__avx512vnni) {
  GEMM(UNSIGNED, 1, WEIGHTS_ZERO_POINT, unsigned_requantization);
}

QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_7x32c4__avx512vnni) {
  GEMM(UNSIGNED, ROWS, WEIGHTS_ZERO_POINT, unsigned_requantization);
}

QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_1x32c4__avx512vnni) {
  IGEMM(UNSIGNED, 1, WEIGHTS_ZERO_POINT, unsigned_requantization);
}

QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_7x32c4__avx512vnni) {
  IGEMM(UNSIGNED, ROWS, WEIGHTS_ZERO_POINT, unsigned_requantization);
}

QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_1x32c4__avx512vnni) {
  GEMM(SIGNED, 1, OFFSET, signed_requantization);
}

QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_7x32c4__avx512vnni) {
  GEMM(SIGNED, ROWS, OFFSET, signed_requantization);
}

QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_1x32c4__avx512vnni) {
  IGEMM(SIGNED, 1, OFFSET, signed_requantization);
}

QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_7x32c4__avx512vnni) {
  IGEMM(SIGNED, ROWS, OFFSET, signed_requantization);
}
