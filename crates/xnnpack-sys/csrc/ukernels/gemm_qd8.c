// Matrix products of rows quantized at run time, with weights of int8 or with 4-bit weights that have a scale for each
// block. Convolutions are in `conv_qd8.c`.
//
// XNNPACK's tile is 16 channels wide, and its instructions multiply eight inputs of eight channels, which leaves two sums for a channel
// to add at the end of a row or of every block. Behind a block, the scales of 16 channels are half a cache line, so that every
// second vector of weights crosses a line. Here tiles are 32 channels wide, and an instruction multiplies four inputs of 16
// channels. int8 weights have 128 added when they are packed; XNNPACK adds it to inputs for every two products. Sums are of
// integers, and sums of blocks are added in XNNPACK's order, so that results are the same bit for bit.
//
// `kind`, `rows` and `halves` are constants wherever these functions are inlined, so that loops over them are
// unrolled and arrays become registers.

#include "ukernels/gemm_qd8.h"

#include <string.h>

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "ukernels/output_f32.h"
#include "ukernels/unsigned_weights.h"
#include "xnnpack.h"
#include "xnnpack/math.h"

// GCC 12 would copy every sum twice in each step.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-coalesce-vars")
#endif

#define MAX_ROWS QC8W_GEMM_ROWS
#define CHANNELS QD8_GEMM_CHANNELS
#define DEPTH (1 << QD8_GEMM_LOG2_DEPTH)
#define LANES 16
#define HALVES (CHANNELS / LANES)
#define UNROLL _Pragma("GCC unroll 8")
// The difference of signed and unsigned bytes.
#define OFFSET 128
// Matrices of bits that select the upper or lower four bits of each byte.
#define SHIFT_LEFT_BY_4 0x01020408

enum kind {
  // Weights of int8.
  BYTES,
  // Weights of 4 bits.
  NIBBLES,
};

struct rows {
  size_t mr;
  const int8_t* at;
  size_t stride;
  // Inputs of a row.
  size_t depth;
  // NIBBLES: inputs of a block.
  size_t block;
  const struct xnn_qd8_quantization_params* quantization;
};

static XNN_INLINE void set_to_zero(size_t rows, size_t halves, __m512i sums[MAX_ROWS][HALVES]) {
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      sums[row][half] = _mm512_setzero_si512();
    }
  }
}

static XNN_INLINE void add(
    size_t rows, size_t halves, __m512i sums[MAX_ROWS][HALVES], const __m512i more[MAX_ROWS][HALVES])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      sums[row][half] = _mm512_add_epi32(sums[row][half], more[row][half]);
    }
  }
}

// Adds products of four inputs, which get 128 added for NIBBLES.
static XNN_INLINE void multiply(
    enum kind kind, size_t rows, size_t halves, const int8_t* const from[MAX_ROWS], size_t k,
    const __m512i weights[HALVES], __m512i sums[MAX_ROWS][HALVES])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    int32_t four;
    memcpy(&four, from[row] + k, sizeof(four));
    __m512i inputs = _mm512_set1_epi32(four);
    if (kind == NIBBLES) {
      inputs = _mm512_xor_si512(inputs, _mm512_set1_epi8((int8_t) OFFSET));
    }
    UNROLL for (size_t half = 0; half < halves; half++) {
      sums[row][half] = add_dot_products(kind == BYTES, sums[row][half], inputs, weights[half]);
    }
  }
}

static XNN_INLINE void multiply_bytes(
    size_t rows, size_t halves, const int8_t* const from[MAX_ROWS], size_t k, const uint8_t* weights,
    __m512i sums[MAX_ROWS][HALVES])
{
  __m512i bytes[HALVES];
  UNROLL for (size_t half = 0; half < halves; half++) {
    bytes[half] = _mm512_loadu_si512(weights + half * LANES * DEPTH);
  }
  multiply(BYTES, rows, halves, from, k, bytes, sums);
}

// Splits bytes into weights for two steps, each times 16; scales are a 16th.
static XNN_INLINE void multiply_nibbles(
    size_t rows, size_t halves, const int8_t* const from[MAX_ROWS], size_t k, const uint8_t* weights,
    __m512i sums[MAX_ROWS][HALVES], __m512i more[MAX_ROWS][HALVES])
{
  __m512i lower[HALVES];
  __m512i upper[HALVES];
  UNROLL for (size_t half = 0; half < halves; half++) {
    const __m512i both = _mm512_loadu_si512(weights + half * LANES * DEPTH);
    lower[half] = _mm512_gf2p8affine_epi64_epi8(both, _mm512_set1_epi64(SHIFT_LEFT_BY_4), 0);
    upper[half] = _mm512_and_si512(both, _mm512_set1_epi8((int8_t) 0xF0));
  }
  multiply(NIBBLES, rows, halves, from, k, lower, sums);
  multiply(NIBBLES, rows, halves, from, k + DEPTH, upper, rows == 1 ? more : sums);
}

// Returns the contributions of the zero points of rows and of weights, from the sums of the other side.
static XNN_INLINE void start_sums(
    size_t rows, size_t halves, const __m512i zero_points[MAX_ROWS], const __m512i sums_of_inputs[MAX_ROWS],
    const uint8_t* sums_of_weights, __m512i sums[MAX_ROWS][HALVES])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      const __m512i sum_of_weights = _mm512_loadu_si512(sums_of_weights + half * LANES * sizeof(int32_t));
      sums[row][half] = _mm512_sub_epi32(_mm512_mullo_epi32(sum_of_weights, zero_points[row]), sums_of_inputs[row]);
    }
  }
}

static XNN_INLINE void to_floats(
    size_t rows, size_t halves, const __m512i sums[MAX_ROWS][HALVES], __m512 floats[MAX_ROWS][HALVES])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      floats[row][half] = _mm512_cvtepi32_ps(sums[row][half]);
    }
  }
}

// Multiplies whole rows.
static XNN_INLINE const uint8_t* multiply_rows(
    size_t rows, size_t halves, const struct rows* input, const int8_t* const from[MAX_ROWS], const uint8_t* weights,
    __m512i sums[MAX_ROWS][HALVES])
{
  size_t k = 0;
  do {
    multiply_bytes(rows, halves, from, k, weights, sums);
    weights += CHANNELS * DEPTH;
    k += DEPTH;
  } while (k < input->depth);
  return weights;
}

// BYTES: adds products, and returns the address behind the weights. `weights` begins with the sums of the channels' weights. Weights
// for inputs behind the row are 0. Every second product of a single row is added to another sum, so that they depend on each other
// less.
static XNN_INLINE const uint8_t* sum_of_bytes(
    size_t rows, size_t halves, const struct rows* input, const int8_t* const from[MAX_ROWS],
    const __m512i zero_points[MAX_ROWS], const __m512i sums_of_inputs[MAX_ROWS], const uint8_t* weights,
    __m512 scaled[MAX_ROWS][HALVES])
{
  __m512i sums[MAX_ROWS][HALVES];
  start_sums(rows, halves, zero_points, sums_of_inputs, weights, sums);
  weights += CHANNELS * sizeof(int32_t);
  size_t k = 0;
  if (rows == 1) {
    __m512i more[MAX_ROWS][HALVES];
    set_to_zero(rows, halves, more);
    for (; k + DEPTH < input->depth; k += 2 * DEPTH) {
      multiply_bytes(rows, halves, from, k, weights, sums);
      multiply_bytes(rows, halves, from, k + DEPTH, weights + CHANNELS * DEPTH, more);
      weights += 2 * CHANNELS * DEPTH;
    }
    if (k < input->depth) {
      multiply_bytes(rows, halves, from, k, weights, sums);
      weights += CHANNELS * DEPTH;
    }
    add(rows, halves, sums, more);
  } else {
    weights = multiply_rows(rows, halves, input, from, weights, sums);
  }
  to_floats(rows, halves, sums, scaled);
  return weights;
}

// Loads 16 scales, of which only the upper halves are stored.
static XNN_INLINE __m512 scales_of_block(const uint8_t* from) {
  const __m256i upper = _mm256_loadu_si256((const __m256i*) from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}

// NIBBLES: adds products, times the blocks' scales.
static XNN_INLINE const uint8_t* sum_of_blocks(
    size_t rows, size_t halves, const struct rows* input, const int8_t* const from[MAX_ROWS],
    const __m512i zero_points[MAX_ROWS], const uint8_t* weights, __m512 scaled[MAX_ROWS][HALVES])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      const __m512 sum_of_weights = _mm512_loadu_ps(weights + half * LANES * sizeof(float));
      scaled[row][half] = _mm512_mul_ps(sum_of_weights, _mm512_cvtepi32_ps(zero_points[row]));
    }
  }
  weights += CHANNELS * sizeof(float);
  for (size_t k = 0; k < input->depth;) {
    __m512i sums[MAX_ROWS][HALVES];
    __m512i more[MAX_ROWS][HALVES];
    set_to_zero(rows, halves, sums);
    set_to_zero(rows, halves, more);
    for (const size_t end = k + input->block; k < end; k += XNN_MIN_BLOCKSIZE) {
      UNROLL for (size_t i = 0; i < XNN_MIN_BLOCKSIZE; i += 2 * DEPTH) {
        multiply_nibbles(rows, halves, from, k + i, weights, sums, more);
        weights += CHANNELS * DEPTH;
      }
    }
    if (rows == 1) {
      add(rows, halves, sums, more);
    }
    UNROLL for (size_t half = 0; half < halves; half++) {
      const __m512 scales = scales_of_block(weights + half * LANES * sizeof(uint16_t));
      UNROLL for (size_t row = 0; row < rows; row++) {
        scaled[row][half] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[row][half]), scales, scaled[row][half]);
      }
    }
    weights += CHANNELS * sizeof(uint16_t);
  }
  return weights;
}

// Operands of each row. Rows behind the last repeat it.
struct sources {
  const int8_t* from[MAX_ROWS];
  const struct xnn_qd8_quantization_params* quantization[MAX_ROWS];
  __m512i zero_points[MAX_ROWS];
  // BYTES: sums of inputs times 128.
  __m512i sums[MAX_ROWS];
};

static XNN_INLINE struct sources find_rows(enum kind kind, size_t rows, const struct rows* input) {
  struct sources sources;
  UNROLL for (size_t row = 0; row < rows; row++) {
    const size_t place = min(row, input->mr - 1);
    sources.from[row] = input->at + place * input->stride;
    sources.quantization[row] = input->quantization + place;
    const int32_t zero_point = sources.quantization[row]->zero_point;
    sources.zero_points[row] = _mm512_set1_epi32(kind == NIBBLES ? zero_point + OFFSET : zero_point);
    sources.sums[row] = _mm512_setzero_si512();
  }
  if (kind == BYTES) {
    const __m512i offset = _mm512_set1_epi8((int8_t) OFFSET);
    add_products_with_one(true, rows, (const uint8_t* const*) sources.from, input->depth, offset, sources.sums);
    spread_sums(rows, input->depth, sources.sums);
  }
  return sources;
}

// Computes up to 32 channels and returns the end of their weights.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, size_t rows, size_t halves, const struct rows* input, const struct sources* sources,
    const uint8_t* weights, const struct output* output, __mmask32 lanes)
{
  __m512 scaled[MAX_ROWS][HALVES];
  if (kind == BYTES) {
    weights = sum_of_bytes(
        rows, halves, input, sources->from, sources->zero_points, sources->sums, weights, scaled);
  } else {
    weights = sum_of_blocks(rows, halves, input, sources->from, sources->zero_points, weights, scaled);
  }
  const float* scales = (const float*) weights;
  const float* bias = kind == NIBBLES ? scales : scales + CHANNELS;
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (row < input->mr) {
      const __m512 row_scale = _mm512_set1_ps(sources->quantization[row]->inv_scale);
      UNROLL for (size_t half = 0; half < halves; half++) {
        const size_t channel = half * LANES;
        const __m512 scale = kind == NIBBLES ? _mm512_set1_ps(1) : _mm512_loadu_ps(scales + channel);
        const __m512 of_row = _mm512_mul_ps(scaled[row][half], row_scale);
        const __m512 sum = _mm512_fmadd_ps(of_row, scale, _mm512_loadu_ps(bias + channel));
        store(output, row, channel, sum, lanes);
      }
    }
  }
  return (const uint8_t*) (bias + CHANNELS);
}

static XNN_INLINE void gemm(
    enum kind kind, size_t rows, size_t nc, const struct rows* input, const uint8_t* weights, struct output output,
    size_t tile_stride)
{
  const struct sources sources = find_rows(kind, rows, input);
  for (; nc > CHANNELS; nc -= CHANNELS) {
    weights = tile(kind, rows, HALVES, input, &sources, weights, &output, UINT32_MAX);
    output.at = (float*) ((uintptr_t) output.at + tile_stride);
  }
  const __mmask32 lanes = UINT32_MAX >> (CHANNELS - nc);
  if (nc > LANES) {
    tile(kind, rows, HALVES, input, &sources, weights, &output, lanes);
  } else {
    tile(kind, rows, 1, input, &sources, weights, &output, lanes);
  }
}

#define GEMM(kind, rows_of_tile, block_size) \
  ASSERT_GEMM(rows_of_tile, 1); \
  const struct rows input = { \
      .mr = mr, .at = a, .stride = a_stride, .depth = kc, .block = block_size, .quantization = quantization_params}; \
  gemm(kind, rows_of_tile, nc, &input, w, OUTPUT, cn_stride)

QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_1x32c4__avx512vnnigfni) {
  GEMM(BYTES, 1, 0);
}

QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_4x32c4__avx512vnnigfni) {
  GEMM(BYTES, QC8W_GEMM_FEW_ROWS, 0);
}

QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_8x32c4__avx512vnnigfni) {
  GEMM(BYTES, QC8W_GEMM_ROWS, 0);
}

QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_1x32c4__avx512vnnigfni) {
  GEMM(NIBBLES, 1, params->scalar.blocksize);
}

QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_6x32c4__avx512vnnigfni) {
  GEMM(NIBBLES, QB4W_GEMM_ROWS, params->scalar.blocksize);
}
