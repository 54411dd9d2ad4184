// Matrix products of floats with SSE4.1, 4 x 4, two inputs at a time.
//
// SSE has no instruction that loads a float into all lanes: XNNPACK's microkernels load it and shuffle, which takes an instruction of
// the units that add. Two floats are loaded into both halves of a vector without one. So a vector of sums has two channels, and for
// each the sum over even inputs and that over odd ones, which are added at the end (four fifths of the time). Single rows are
// multiplied by several tiles at once, because each sum depends on the one before.
//
// `rows` and `tiles` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become
// registers.

#include <stdbool.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/gemm_f32.h"
#include "ukernels/gemm_f32_operands.h"
#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"
#include "xnnpack/math.h"

#define ROWS 4
#define TILES 4
// Inputs of a step, channels of a tile and vectors of their sums.
#define PAIR F32_PAIRS_STEP
#define CHANNELS F32_PAIRS_CHANNELS
#define VECTORS 2
#define LANES 4
#define UNROLL _Pragma("GCC unroll 4")

typedef __m128 sums_of[TILES][VECTORS];

// Returns two inputs twice, or the last one and 0: an input that does not exist may be NaN.
static XNN_INLINE __m128 load(const float* from, bool is_pair) {
  if (is_pair) {
    return _mm_castpd_ps(_mm_loaddup_pd((const double*) from));
  }
  const __m128 last = _mm_load_ss(from);
  return _mm_movelh_ps(last, last);
}

// Adds the products of inputs of each row with the channels of a tile, or those of one row with `tiles` tiles, whose weights are
// `stride` floats apart.
static XNN_INLINE void multiply(
    size_t rows, size_t tiles, const float* const from[ROWS], size_t k, bool is_pair, const float* weights, size_t stride,
    sums_of sums)
{
  UNROLL for (size_t i = 0; i < rows * tiles; i++) {
    const __m128 inputs = load(from[tiles > 1 ? 0 : i] + k, is_pair);
    UNROLL for (size_t j = 0; j < VECTORS; j++) {
      const __m128 of_channels = _mm_load_ps(weights + (tiles > 1 ? i * stride : 0) + j * LANES);
      sums[i][j] = _mm_add_ps(sums[i][j], _mm_mul_ps(inputs, of_channels));
    }
  }
}

static XNN_INLINE void store(float* at, __m128 sums, size_t channels) {
  if (channels >= CHANNELS) {
    _mm_storeu_ps(at, sums);
    return;
  }
  if (channels & 2) {
    _mm_storel_pi((__m64*) at, sums);
    sums = _mm_movehl_ps(sums, sums);
    at += 2;
  }
  if (channels & 1) {
    _mm_store_ss(at, sums);
  }
}

// Computes `tiles` tiles, of which only the last may have fewer channels, and returns the address behind their weights. Rows behind
// the last of `mr` are not stored.
static XNN_INLINE const float* compute(
    size_t rows, size_t tiles, size_t mr, size_t nc, const struct input* input, const float* weights,
    const struct output* output)
{
  const size_t stride = CHANNELS * (1 + input->positions * round_up_po2(input->depth, PAIR));
  sums_of sums;
  UNROLL for (size_t i = 0; i < rows * tiles; i++) {
    sums[i][0] = _mm_setzero_ps();
    sums[i][1] = _mm_setzero_ps();
  }
  const float* at = weights + CHANNELS;
  for (size_t position = 0; position < input->positions; position++) {
    const float* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = input_at(input->rows[position * rows + row], input->zero, input->offset);
    }
    size_t k = 0;
    for (; k + PAIR <= input->depth; k += PAIR, at += VECTORS * LANES) {
      multiply(rows, tiles, from, k, true, at, stride, sums);
    }
    if (k != input->depth) {
      multiply(rows, tiles, from, k, false, at, stride, sums);
      at += VECTORS * LANES;
    }
  }
  float* to = output->at;
  UNROLL for (size_t i = 0; i < rows * tiles; i++) {
    if (tiles == 1 && i >= mr) {
      break;
    }
    const __m128 bias = _mm_load_ps(weights + (tiles > 1 ? i * stride : 0));
    const __m128 sum = _mm_add_ps(bias, _mm_hadd_ps(sums[i][0], sums[i][1]));
    store(to, vfloat_clamp(sum, output->min, output->max), nc - (tiles > 1 ? i * CHANNELS : 0));
    to = further(to, tiles > 1 ? output->tile_stride : output->row_stride);
  }
  return weights + tiles * stride;
}

static XNN_INLINE void product(
    size_t rows, size_t mr, size_t nc, const struct input* input, const float* weights, struct output output)
{
  for (; rows == 1 && nc > (TILES - 1) * CHANNELS; nc -= min(nc, TILES * CHANNELS)) {
    weights = compute(1, TILES, 1, nc, input, weights, &output);
    output.at = further(output.at, TILES * output.tile_stride);
  }
  for (; nc != 0; nc -= min(nc, CHANNELS)) {
    weights = compute(rows, 1, mr, nc, input, weights, &output);
    output.at = further(output.at, output.tile_stride);
  }
}

#define OUTPUT \
  ((struct output) { \
      .at = c, .row_stride = cm_stride, .tile_stride = cn_stride, .min = _mm_set1_ps(params->scalar.min), \
      .max = _mm_set1_ps(params->scalar.max)})

#define GEMM(rows_of_tile) \
  GEMM_INPUT(rows_of_tile); \
  product(rows_of_tile, mr, nc, &input, w, OUTPUT)

#define IGEMM(rows_of_tile) \
  IGEMM_INPUT(rows_of_tile); \
  product(rows_of_tile, mr, nc, &input, w, OUTPUT)

F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_1x4c2__sse41) { GEMM(1); }

F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_4x4c2__sse41) { GEMM(4); }

F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_1x4c2__sse41) { IGEMM(1); }

F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_4x4c2__sse41) { IGEMM(4); }
