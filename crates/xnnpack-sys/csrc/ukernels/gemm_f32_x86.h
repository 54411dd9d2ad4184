// Matrix products of floats with fp32 or fp16 weights: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernels advance the pointers of all rows by one input in a step: additions that replace products. Here one index does
// for all rows, and with AVX512 a step is four inputs. Single rows are multiplied by several tiles of channels at once, because each
// sum depends on the one before. Packing and the order of additions are XNNPACK's, so that results are the same bit for bit.
//
// fp16 weights take half of the memory, and half of the time to load them. They are converted to floats each time that they are
// read, for which there is time if few rows share them.
//
// `weight`, `is_large`, `rows`, `vectors` and `tiles` are constants wherever these functions are inlined, so that loops over them are
// unrolled and arrays become registers.

#include "ukernels/gemm_f32.h"

#include <stdbool.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/gemm_f32_operands.h"
#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/math.h"

// Keeps a sum in its register. GCC 12 copies sums in each step otherwise, and without FMA takes up to 1.1 times as long.
#define STAYS(sum) __asm__("" : "+v"(sum))

#define MAX_ROWS 10
#define MAX_TILES 4
#define LANES VECTOR_LANES
// Inputs of a step. GCC keeps sums in registers with more than one only where there are registers to spare.
#ifdef __AVX512F__
#define STEP F32_GEMM_STEP
#else
#define STEP 1
#endif
// Bytes of weights that are prefetched, half of a page: the processor does not prefetch beyond a page's end by itself. Weights that fit
// into the first-level cache are not prefetched.
#define AHEAD 2048
#define AHEAD_FROM (128 * 1024)
#define UNROLL _Pragma("GCC unroll 10")

// The most channels of a row, or tiles of a single row.
typedef vfloat sums_of[MAX_ROWS][2];

// Bytes of a weight.
enum { HALF = 2, FLOAT = 4 };

static XNN_INLINE const void* behind(const void* weights, size_t bytes) {
  return (const void*) ((uintptr_t) weights + bytes);
}

// Weights of a vector of channels.
static XNN_INLINE vfloat load(size_t weight, const void* at) {
#ifdef __AVX512F__
  if (weight == HALF) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(at));
  }
#endif
  return VINT(loadu_ps, at);
}

// Adds the products of one input of each row with the channels of a tile.
static XNN_INLINE void multiply_one(
    size_t weight, bool is_large, size_t rows, size_t vectors, const float* const from[MAX_ROWS], size_t k,
    const void* weights, sums_of sums)
{
  vfloat of_channels[2];
  UNROLL for (size_t i = 0; i < vectors; i++) {
    const void* of_lanes = behind(weights, i * LANES * weight);
    if (is_large) {
      _mm_prefetch((const char*) of_lanes + AHEAD, _MM_HINT_T0);
    }
    of_channels[i] = load(weight, of_lanes);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    const vfloat input = VINT(set1_ps, from[row][k]);
    UNROLL for (size_t i = 0; i < vectors; i++) {
      sums[row][i] = vfloat_add_product(sums[row][i], input, of_channels[i]);
      STAYS(sums[row][i]);
    }
  }
}

// Adds the products of one input of a single row with several tiles, whose weights are `stride` bytes apart.
static XNN_INLINE void multiply_tiles(
    size_t weight, size_t tiles, size_t vectors, const float* from, const void* weights, size_t stride, sums_of sums)
{
  const vfloat input = VINT(set1_ps, *from);
  UNROLL for (size_t tile = 0; tile < tiles; tile++) {
    UNROLL for (size_t i = 0; i < vectors; i++) {
      const vfloat of_channels = load(weight, behind(weights, tile * stride + i * LANES * weight));
      sums[tile][i] = vfloat_add_product(sums[tile][i], input, of_channels);
    }
  }
}

static XNN_INLINE void multiply_inputs(
    size_t count, size_t weight, bool is_large, size_t rows, size_t tiles, size_t vectors,
    const float* const from[MAX_ROWS], size_t k, const void* weights, size_t stride, sums_of sums)
{
  UNROLL for (size_t i = 0; i < count; i++) {
    const void* of_input = behind(weights, (k + i) * vectors * LANES * weight);
    if (tiles > 1) {
      multiply_tiles(weight, tiles, vectors, from[0] + k + i, of_input, stride, sums);
    } else {
      multiply_one(weight, is_large, rows, vectors, from, k + i, of_input, sums);
    }
  }
}

// Adds the products of one position and returns the address behind its weights.
static XNN_INLINE const void* multiply(
    size_t weight, bool is_large, size_t rows, size_t tiles, size_t vectors, const float* const from[MAX_ROWS],
    size_t depth, const void* weights, size_t stride, sums_of sums)
{
  const size_t whole = depth - depth % STEP;
  for (size_t k = 0; k < whole; k += STEP) {
    multiply_inputs(STEP, weight, is_large, rows, tiles, vectors, from, k, weights, stride, sums);
  }
  switch (depth % STEP) {
    case 3:
      multiply_inputs(3, weight, is_large, rows, tiles, vectors, from, whole, weights, stride, sums);
      break;
    case 2:
      multiply_inputs(2, weight, is_large, rows, tiles, vectors, from, whole, weights, stride, sums);
      break;
    case 1:
      multiply_inputs(1, weight, is_large, rows, tiles, vectors, from, whole, weights, stride, sums);
      break;
  }
  return behind(weights, depth * vectors * LANES * weight);
}

static XNN_INLINE void store(const struct output* output, float* at, vfloat sum, size_t channels) {
  vfloat_store(at, vfloat_clamp(sum, output->min, output->max), channels);
}

// Stores the rows of one tile, or the tiles of one row. `are_all`: all channels of the tiles exist.
static XNN_INLINE void store_all(
    bool are_all, size_t rows, size_t tiles, size_t vectors, size_t mr, size_t nc, const sums_of sums,
    const struct output* output)
{
  float* at = output->at;
  UNROLL for (size_t i = 0; i < rows * tiles; i++) {
    if (tiles == 1 && i >= mr) {
      return;
    }
    const size_t left = nc - (tiles > 1 ? i * vectors * LANES : 0);
    UNROLL for (size_t j = 0; j < vectors; j++) {
      if (are_all || left > j * LANES) {
        store(output, at + j * LANES, sums[i][j], are_all ? LANES : left - j * LANES);
      }
    }
    at = further(at, tiles > 1 ? output->tile_stride : output->row_stride);
  }
}

// Computes `tiles` tiles of channels, of which only the last may have fewer than `vectors` of them. Rows behind the last of
// `mr` are not stored.
static XNN_INLINE const void* compute(
    size_t weight, bool is_large, size_t rows, size_t tiles, size_t vectors, size_t mr, size_t nc,
    const struct input* input, const void* weights, const struct output* output)
{
  const size_t channels = vectors * LANES;
  const size_t stride = channels * (FLOAT + input->positions * input->depth * weight);
  sums_of sums;
  UNROLL for (size_t i = 0; i < rows * tiles; i++) {
    UNROLL for (size_t j = 0; j < vectors; j++) {
      sums[i][j] = load(FLOAT, behind(weights, (tiles > 1 ? i * stride : 0) + j * LANES * FLOAT));
    }
  }
  const void* at = behind(weights, channels * FLOAT);
  for (size_t position = 0; position < input->positions; position++) {
    const float* from[MAX_ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = input_at(input->rows[position * rows + row], input->zero, input->offset);
    }
    at = multiply(weight, is_large, rows, tiles, vectors, from, input->depth, at, stride, sums);
  }
  if (nc >= tiles * channels) {
    store_all(true, rows, tiles, vectors, mr, nc, sums, output);
  } else {
    store_all(false, rows, tiles, vectors, mr, nc, sums, output);
  }
  return behind(weights, tiles * stride);
}

// Computes tiles, `tiles` at a time, as long as there are that many. Returns the weights of the rest.
static XNN_INLINE const void* compute_single_row(
    size_t weight, size_t tiles, size_t vectors, size_t* nc, const struct input* input, const void* weights,
    struct output* output)
{
  const size_t channels = vectors * LANES;
  while (*nc > (tiles - 1) * channels) {
    weights = compute(weight, false, 1, tiles, vectors, 1, *nc, input, weights, output);
    *nc -= min(*nc, tiles * channels);
    output->at = further(output->at, tiles * output->tile_stride);
  }
  return weights;
}

static XNN_INLINE void compute_rows(
    size_t weight, bool is_large, size_t rows, size_t vectors, size_t mr, size_t nc, const struct input* input,
    const void* weights, struct output* output)
{
  const size_t channels = vectors * LANES;
  for (;;) {
    weights = compute(weight, is_large, rows, 1, vectors, mr, nc, input, weights, output);
    if (nc <= channels) {
      return;
    }
    nc -= channels;
    output->at = further(output->at, output->tile_stride);
  }
}

static XNN_INLINE void product(
    size_t weight, size_t rows, size_t vectors, size_t mr, size_t nc, const struct input* input, const void* weights,
    struct output output)
{
  if (rows == 1) {
    weights = compute_single_row(weight, MAX_TILES, vectors, &nc, input, weights, &output);
    weights = compute_single_row(weight, 2, vectors, &nc, input, weights, &output);
    compute_single_row(weight, 1, vectors, &nc, input, weights, &output);
  } else if (nc * input->positions * input->depth * weight >= AHEAD_FROM) {
    compute_rows(weight, true, rows, vectors, mr, nc, input, weights, &output);
  } else {
    compute_rows(weight, false, rows, vectors, mr, nc, input, weights, &output);
  }
}

#define OUTPUT \
  ((struct output) { \
      .at = c, .row_stride = cm_stride, .tile_stride = cn_stride, .min = VINT(set1_ps, params->scalar.min), \
      .max = VINT(set1_ps, params->scalar.max)})

#define GEMM(weight, rows_of_tile, vectors_of_tile) \
  GEMM_INPUT(rows_of_tile); \
  product(weight, rows_of_tile, vectors_of_tile, mr, nc, &input, w, OUTPUT)

#define IGEMM(rows_of_tile, vectors_of_tile) \
  IGEMM_INPUT(rows_of_tile); \
  product(FLOAT, rows_of_tile, vectors_of_tile, mr, nc, &input, w, OUTPUT)

// Microkernels for tiles of some rows and vectors of channels.
#define MICROKERNELS(rows, channels, vectors) \
  F32_GEMM(WITH_ISA(xnnpack_sys_f32_gemm_minmax_ukernel_##rows##x##channels##__)) { GEMM(FLOAT, rows, vectors); } \
  F32_IGEMM(WITH_ISA(xnnpack_sys_f32_igemm_minmax_ukernel_##rows##x##channels##__)) { IGEMM(rows, vectors); }
