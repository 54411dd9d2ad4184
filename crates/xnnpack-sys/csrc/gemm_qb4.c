// Matrix products of rows quantized at run time with 4-bit weights that have a scale for each block.
//
// XNNPACK's tile is 16 channels wide: the scales behind a block are half a cache line, so that every second vector of
// weights lies across two. Its instructions multiply eight inputs of eight channels, which leaves two sums to
// a channel, to be added up after every block. Here tiles are 32 wide, and products those of four inputs of 16
// channels. Sums of a block are of integers, and blocks are added up as XNNPACK does, so that results are the same bit for
// bit.
//
// `rows` and `halves` are constants wherever these functions are inlined, so that loops over them are unrolled and
// arrays become registers.

#include "gemm_qb4.h"

#include <string.h>

#include <immintrin.h>

#include "microkernel.h"
#include "xnnpack.h"

#define ROWS QB4_GEMM_ROWS
#define CHANNELS QB4_GEMM_CHANNELS
#define DEPTH (1 << QB4_GEMM_LOG2_DEPTH)
#define LANES 16
#define HALVES (CHANNELS / LANES)
#define UNROLL _Pragma("GCC unroll 8")
// Of each byte, as a matrix of bits.
#define SHIFT_LEFT_BY_4 0x01020408

// Four inputs with 128 added, for all channels.
static XNN_INLINE __m512i four_inputs(const int8_t* from) {
  int32_t four;
  memcpy(&four, from, sizeof(four));
  return _mm512_xor_si512(_mm512_set1_epi32(four), _mm512_set1_epi8((int8_t) 0x80));
}

// 16 scales, of which only the upper halves are stored.
static XNN_INLINE __m512 scales_at(const uint8_t* from) {
  const __m256i upper = _mm256_loadu_si256((const __m256i*) from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}

// The products of one row wait for each other less where every second one is added to another sum.
static XNN_INLINE size_t parts(size_t rows) { return rows == 1 ? 2 : 1; }

// Adds products of eight inputs. A byte has weights for two steps of four, each of which stands for 16 times itself;
// scales are a 16th for that.
static XNN_INLINE void multiply_bytes(
    size_t rows, size_t halves, const int8_t* from[ROWS], const uint8_t* weights, __m512i sums[ROWS][HALVES][2])
{
  __m512i nibbles[HALVES][2];
  UNROLL for (size_t half = 0; half < halves; half++) {
    const __m512i both = _mm512_loadu_si512(weights + half * LANES * DEPTH);
    nibbles[half][0] = _mm512_gf2p8affine_epi64_epi8(both, _mm512_set1_epi64(SHIFT_LEFT_BY_4), 0);
    nibbles[half][1] = _mm512_and_si512(both, _mm512_set1_epi8((int8_t) 0xF0));
  }
  UNROLL for (size_t step = 0; step < 2; step++) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      const __m512i inputs = four_inputs(from[row] + step * DEPTH);
      UNROLL for (size_t half = 0; half < halves; half++) {
        __m512i* sum = &sums[row][half][step % parts(rows)];
        *sum = _mm512_dpbusd_epi32(*sum, inputs, nibbles[half][step]);
      }
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    from[row] += 2 * DEPTH;
  }
}

// Multiplies a block; returns what is behind its weights.
static XNN_INLINE const uint8_t* multiply(
    size_t rows, size_t halves, size_t depth, const int8_t* from[ROWS], const uint8_t* weights,
    __m512i sums[ROWS][HALVES][2])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      UNROLL for (size_t part = 0; part < parts(rows); part++) {
        sums[row][half][part] = _mm512_setzero_si512();
      }
    }
  }
  for (; depth != 0; depth -= XNN_MIN_BLOCKSIZE) {
    UNROLL for (size_t bytes = 0; bytes < XNN_MIN_BLOCKSIZE / (2 * DEPTH); bytes++) {
      multiply_bytes(rows, halves, from, weights, sums);
      weights += CHANNELS * DEPTH;
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t half = 0; half < halves; half++) {
      if (parts(rows) == 2) {
        sums[row][half][0] = _mm512_add_epi32(sums[row][half][0], sums[row][half][1]);
      }
    }
  }
  return weights;
}

struct rows {
  size_t mr;
  const int8_t* at;
  size_t stride;
  // Of a row.
  size_t depth;
  size_t block;
  const struct xnn_qd8_quantization_params* quantization;
};

struct output {
  float* at;
  size_t row_stride;
  __m512 min;
  __m512 max;
};

// Computes up to 32 channels; returns the end of their weights.
static XNN_INLINE const uint8_t* tile(
    size_t rows, size_t halves, const struct rows* input, const uint8_t* weights, const struct output* output,
    __mmask32 lanes)
{
  const int8_t* from[ROWS];
  size_t place[ROWS];
  __m512 scaled[ROWS][HALVES];
  UNROLL for (size_t row = 0; row < rows; row++) {
    place[row] = row < input->mr ? row : input->mr - 1;
    from[row] = input->at + place[row] * input->stride;
    const __m512 zero_point = _mm512_set1_ps((float) input->quantization[place[row]].zero_point + 128);
    UNROLL for (size_t half = 0; half < halves; half++) {
      const __m512 sum_of_weights = _mm512_loadu_ps((const float*) weights + half * LANES);
      scaled[row][half] = _mm512_mul_ps(sum_of_weights, zero_point);
    }
  }
  weights += CHANNELS * sizeof(float);
  for (size_t k = 0; k < input->depth; k += input->block) {
    __m512i sums[ROWS][HALVES][2];
    weights = multiply(rows, halves, input->block, from, weights, sums);
    UNROLL for (size_t half = 0; half < halves; half++) {
      const __m512 scales = scales_at(weights + half * LANES * sizeof(uint16_t));
      UNROLL for (size_t row = 0; row < rows; row++) {
        scaled[row][half] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[row][half][0]), scales, scaled[row][half]);
      }
    }
    weights += CHANNELS * sizeof(uint16_t);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (row < input->mr) {
      const __m512 scale = _mm512_set1_ps(input->quantization[row].inv_scale);
      float* at = (float*) ((uintptr_t) output->at + row * output->row_stride);
      UNROLL for (size_t half = 0; half < halves; half++) {
        const __m512 bias = _mm512_loadu_ps((const float*) weights + half * LANES);
        const __m512 sum = _mm512_add_ps(_mm512_mul_ps(scaled[row][half], scale), bias);
        const __m512 clamped = _mm512_min_ps(_mm512_max_ps(sum, output->min), output->max);
        _mm512_mask_storeu_ps(at + half * LANES, (__mmask16) (lanes >> half * LANES), clamped);
      }
    }
  }
  return weights + CHANNELS * sizeof(float);
}

static XNN_INLINE void gemm(
    size_t rows, size_t nc, const struct rows* input, const uint8_t* weights, struct output output, size_t tile_stride)
{
  for (; nc > CHANNELS; nc -= CHANNELS) {
    weights = tile(rows, HALVES, input, weights, &output, UINT32_MAX);
    output.at = (float*) ((uintptr_t) output.at + tile_stride);
  }
  const __mmask32 lanes = UINT32_MAX >> (CHANNELS - nc);
  if (nc > LANES) {
    tile(rows, HALVES, input, weights, &output, lanes);
  } else {
    tile(rows, 1, input, weights, &output, lanes);
  }
}

#define GEMM(rows_of_tile) \
  const struct rows input = { \
      .mr = mr, .at = a, .stride = a_stride, .depth = kc, .block = params->scalar.blocksize, \
      .quantization = quantization_params}; \
  const struct output output = { \
      .at = c, .row_stride = cm_stride, .min = _mm512_set1_ps(params->scalar.min), \
      .max = _mm512_set1_ps(params->scalar.max)}; \
  gemm(rows_of_tile, nc, &input, w, output, cn_stride)

QB4_GEMM(xnnpack_sys_qb4_gemm_1x32c4) {
  GEMM(1);
}

QB4_GEMM(xnnpack_sys_qb4_gemm_6x32c4) {
  GEMM(ROWS);
}
