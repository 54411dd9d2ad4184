// Matrix products and convolutions of floats with few channels, two at a time: included by a file for each instruction set, which
// defines `ISA` and `ROWS` of the tile.
//
// Other tiles have a channel in each lane, most of which would be empty. Here lanes are neighbouring inputs, and the lanes of a sum are
// added at the end, so that the last bits of results differ.
//
// `rows` and `channels` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become
// registers.

#include <stddef.h>
#include <stdint.h>

#include "ukernels/gemm_f32.h"
#include "ukernels/gemm_f32_operands.h"
#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/math.h"

#define CHANNELS F32_FEW_CHANNELS
#define UNROLL _Pragma("GCC unroll 8")

// Adds the products of up to VECTOR_LANES inputs of each row with the first `channels` channels.
static XNN_INLINE void multiply(
    size_t rows, size_t channels, const float* const from[ROWS], size_t k, size_t count, const float* weights,
    vfloat sums[ROWS][CHANNELS])
{
  vfloat of_channels[CHANNELS];
  UNROLL for (size_t channel = 0; channel < channels; channel++) {
    // Floats behind the last packed weight may be NaN.
    of_channels[channel] = vfloat_load(weights + channel * VECTOR_LANES, count);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    const vfloat inputs = vfloat_load(from[row] + k, count);
    UNROLL for (size_t channel = 0; channel < channels; channel++) {
      sums[row][channel] = vfloat_add_product(sums[row][channel], inputs, of_channels[channel]);
    }
  }
}

// Adds the lanes of each of four vectors.
static XNN_INLINE __m128 lanes_added(const vfloat sums[4]) {
#ifdef __AVX__
  __m256 halves[4];
  UNROLL for (size_t i = 0; i < 4; i++) {
#ifdef __AVX512F__
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums[i]), 1));
    halves[i] = _mm256_add_ps(_mm512_castps512_ps256(sums[i]), high);
#else
    halves[i] = sums[i];
#endif
  }
  const __m256 added = _mm256_hadd_ps(_mm256_hadd_ps(halves[0], halves[1]), _mm256_hadd_ps(halves[2], halves[3]));
  return _mm_add_ps(_mm256_castps256_ps128(added), _mm256_extractf128_ps(added, 1));
#else
  return _mm_hadd_ps(_mm_hadd_ps(sums[0], sums[1]), _mm_hadd_ps(sums[2], sums[3]));
#endif
}

// Bounds are first, so that NaN stays NaN.
static XNN_INLINE __m128 bounded(__m128 x, const union xnn_f32_minmax_params* params) {
  const __m128 min = _mm_set1_ps(params->scalar.min);
  const __m128 max = _mm_set1_ps(params->scalar.max);
  return _mm_min_ps(max, _mm_max_ps(min, x));
}

// Stores the results of four sums, which are of four rows or, with two channels, of two. Rows behind the last of `mr` are not stored.
static XNN_INLINE void store(
    size_t channels, size_t row, size_t mr, const vfloat sums[4], const float* bias, float* output, size_t row_stride,
    const union xnn_f32_minmax_params* params)
{
  const __m128 biases = channels == 1 ? _mm_set1_ps(bias[0]) : _mm_setr_ps(bias[0], bias[1], bias[0], bias[1]);
  float results[4];
  _mm_storeu_ps(results, bounded(_mm_add_ps(lanes_added(sums), biases), params));
  UNROLL for (size_t i = 0; i < 4 / channels; i++) {
    if (row + i < mr) {
      float* at = further(output, (row + i) * row_stride);
      UNROLL for (size_t channel = 0; channel < channels; channel++) {
        at[channel] = results[i * channels + channel];
      }
    }
  }
}

// Computes the first `channels` channels of a tile, and returns the address behind its weights.
static XNN_INLINE const float* tile(
    size_t rows, size_t channels, size_t mr, const struct input* input, const float* weights, float* output, size_t row_stride,
    const union xnn_f32_minmax_params* params)
{
  const float* const bias = weights;
  weights += CHANNELS;
  vfloat sums[ROWS][CHANNELS];
  UNROLL for (size_t i = 0; i < ROWS * CHANNELS; i++) {
    sums[i / CHANNELS][i % CHANNELS] = VINT(setzero_ps);
  }
  for (size_t position = 0; position < input->positions; position++) {
    const float* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = input_at(input->rows[position * rows + row], input->zero, input->offset);
    }
    size_t k = 0;
    for (; k + VECTOR_LANES <= input->depth; k += VECTOR_LANES) {
      multiply(rows, channels, from, k, VECTOR_LANES, weights, sums);
      weights += CHANNELS * VECTOR_LANES;
    }
    if (k != input->depth) {
      multiply(rows, channels, from, k, input->depth - k, weights, sums);
      weights += CHANNELS * VECTOR_LANES;
    }
  }
  UNROLL for (size_t row = 0; row < rows; row += 4 / channels) {
    vfloat some[4];
    UNROLL for (size_t i = 0; i < 4; i++) {
      some[i] = row + i / channels < rows ? sums[row + i / channels][i % channels] : VINT(setzero_ps);
    }
    store(channels, row, mr, some, bias, output, row_stride, params);
  }
  return weights;
}

static XNN_INLINE void product(
    size_t rows, size_t mr, size_t nc, const struct input* input, const float* weights, float* output, size_t row_stride,
    size_t tile_stride, const union xnn_f32_minmax_params* params)
{
  for (; nc >= CHANNELS; nc -= CHANNELS) {
    weights = tile(rows, CHANNELS, mr, input, weights, output, row_stride, params);
    output = further(output, tile_stride);
  }
  if (nc != 0) {
    tile(rows, 1, mr, input, weights, output, row_stride, params);
  }
}

#define GEMM(rows_of_tile) \
  GEMM_INPUT(rows_of_tile); \
  product(rows_of_tile, mr, nc, &input, w, c, cm_stride, cn_stride, params)

#define IGEMM(rows_of_tile) \
  IGEMM_INPUT(rows_of_tile); \
  product(rows_of_tile, mr, nc, &input, w, c, cm_stride, cn_stride, params)

#define MICROKERNELS(rows, suffix) \
  F32_GEMM(WITH_ISA(xnnpack_sys_f32_gemm_minmax_ukernel_##suffix##__)) { GEMM(rows); } \
  F32_IGEMM(WITH_ISA(xnnpack_sys_f32_igemm_minmax_ukernel_##suffix##__)) { IGEMM(rows); }
