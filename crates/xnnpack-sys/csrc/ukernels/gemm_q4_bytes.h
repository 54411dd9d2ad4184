// Matrix products of rows quantized at run time with 4-bit weights that have a scale for each channel, or for each block of inputs:
// included by a file for each instruction set, which defines `ISA`, and `ROWS` of the tile. Vectors are as wide as the instruction set
// (`vector_x86.h`), and a tile has two of them.
//
// Instructions multiply bytes: weights with 8 added, which are unsigned, by signed inputs. 8 times the sum of inputs is subtracted from
// the products of all channels. Without VNNI, two products are at most 2 * 15 * 128, so that 16 bits hold the sum of 16 of them.
// XNNPACK widens both sides for blocks, or adds 128 to inputs for every product, and sums four inputs in 32 bits at once.
//
// `scales`, `rows` and `vectors` are constants wherever these functions are inlined, so that loops are unrolled and arrays become registers.

#include "ukernels/gemm_q4_bytes_api.h"

#include <stdbool.h>
#include <string.h>

#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack.h"
#include "xnnpack/math.h"

// GCC 12 would copy every sum twice in each step.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-coalesce-vars")
#endif

#define VECTORS 2
#define CHANNELS (VECTORS * VECTOR_LANES)
// Inputs of a step: two planes of four.
#define PLANE (1 << Q4_BYTES_LOG2_DEPTH)
#define STEP (Q4_BYTES_PLANES * PLANE)
// Inputs whose products 16 bits hold. The least block.
#define GROUP XNN_MIN_BLOCKSIZE
// Blocks of which sums of inputs are in memory at once.
#define MAX_BLOCKS 128
// The number that is added to weights, to make them unsigned.
#define OFFSET 8
#define UNROLL _Pragma("GCC unroll 8")

enum scales { OF_CHANNELS, OF_BLOCKS };

struct rows {
  const int8_t* from[ROWS];
  const struct xnn_qd8_quantization_params* quantization[ROWS];
  size_t depth;
  // OF_BLOCKS: inputs of a block, whole groups.
  size_t block;
  // OF_CHANNELS: inputs behind the last whole group, padded with zeros.
  int8_t rest[ROWS][GROUP];
};

struct output {
  float* at;
  size_t row_stride;
  size_t tile_stride;
  vfloat min;
  vfloat max;
};

// Sums of the inputs of some blocks, or of whole rows, times -OFFSET.
struct offsets {
  int32_t of_blocks[MAX_BLOCKS][ROWS];
};

// Returns the sum of `count` inputs, whole groups.
static XNN_INLINE int32_t sum_of(const int8_t* inputs, size_t count) {
  __m128i sums = _mm_setzero_si128();
  for (size_t i = 0; i < count; i += sizeof(__m128i)) {
    const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), _mm_loadu_si128((const __m128i*) (inputs + i)));
    sums = _mm_add_epi32(sums, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  }
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, _MM_SHUFFLE(1, 0, 3, 2)));
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, _MM_SHUFFLE(2, 3, 0, 1)));
  return _mm_cvtsi128_si32(sums);
}

// Computes the offsets of up to MAX_BLOCKS blocks from `first` on.
static XNN_INLINE void find_offsets(size_t rows, const struct rows* input, size_t first, struct offsets* offsets) {
  const size_t blocks = min(input->depth / input->block - first, MAX_BLOCKS);
  for (size_t block = 0; block < blocks; block++) {
    for (size_t row = 0; row < rows; row++) {
      offsets->of_blocks[block][row] = -OFFSET * sum_of(input->from[row] + (first + block) * input->block, input->block);
    }
  }
}

// Computes the offsets of whole rows.
static XNN_INLINE void find_offsets_of_rows(size_t rows, const struct rows* input, struct offsets* offsets) {
  for (size_t row = 0; row < rows; row++) {
    const size_t whole = round_down_po2(input->depth, GROUP);
    const int32_t rest = whole == input->depth ? 0 : sum_of(input->rest[row], GROUP);
    offsets->of_blocks[0][row] = -OFFSET * (sum_of(input->from[row], whole) + rest);
  }
}

// Keeps a vector in a register, and where it is computed. Otherwise compilers load operands again for each instruction that uses them,
// or compute all products of a group before they add them, and store them in between.
static XNN_INLINE vint in_register(vint vector) {
  __asm__("" : "+v"(vector));
  return vector;
}

static XNN_INLINE vint four_inputs(const int8_t* from) {
  int32_t four;
  memcpy(&four, from, sizeof(four));
  return in_register(VINT(set1_epi32, four));
}

// Adds products of four inputs of a row: to sums of 32 bits where an instruction does so, otherwise of 16.
static XNN_INLINE vint add_products(vint sums, vint weights, vint inputs) {
#if defined(__AVX512VNNI__)
  return _mm512_dpbusd_epi32(sums, weights, inputs);
#elif defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(sums, weights, inputs);
#else
  return in_register(VINT(add_epi16, sums, VINT(maddubs_epi16, weights, inputs)));
#endif
}

// Sums of products. Those of the upper plane may be apart, times 16.
struct sums {
  vint of[ROWS][VECTORS];
  vint of_upper[ROWS][VECTORS];
};

// Whether sums of the upper plane are apart: this saves shifts of weights, and each product waits less for the last one, but it takes
// twice as many registers, and 32 bits.
static XNN_INLINE bool are_apart(size_t rows) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
  return rows == 1;
#else
  return false;
#endif
}

// Weights of the two planes, with 8 added. Those of the upper plane may be times 16.
struct planes {
  vint lower;
  vint upper;
};

// Packed weights are signed.
static XNN_INLINE struct planes load_planes(bool are_apart, const uint8_t* weights) {
  const vint packed = in_register(vint_load(weights));
  const vint signs = VINT(set1_epi8, (int8_t) (OFFSET << 4 | OFFSET));
  const vint bits = VINT(set1_epi8, are_apart ? (int8_t) 0xF0 : 0x0F);
  const vint lower_bits = VINT(set1_epi8, 0x0F);
#ifdef __AVX512F__
  const vint upper = are_apart ? packed : VINT(srli_epi16, packed, 4);
  // 0x28: the exclusive or of the first two operands, and the third.
  return (struct planes) {
      .lower = _mm512_ternarylogic_epi32(packed, signs, lower_bits, 0x28),
      .upper = _mm512_ternarylogic_epi32(upper, signs, bits, 0x28)};
#else
  const vint both = VINT_BITS(xor, packed, signs);
  const vint upper = are_apart ? both : VINT(srli_epi16, both, 4);
  return (struct planes) {.lower = VINT_BITS(and, both, lower_bits), .upper = VINT_BITS(and, upper, bits)};
#endif
}

// Adds products of a step, from input `k` of the rows on, and returns the address behind the weights.
static XNN_INLINE const uint8_t* add_step(
    size_t rows, size_t vectors, const int8_t* const from[ROWS], size_t k, const uint8_t* weights, struct sums* sums)
{
  const bool apart = are_apart(rows);
  struct planes planes[VECTORS];
  UNROLL for (size_t v = 0; v < vectors; v++) {
    planes[v] = load_planes(apart, weights + v * sizeof(vint));
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    const vint lower = four_inputs(from[row] + k);
    const vint upper = four_inputs(from[row] + k + PLANE);
    UNROLL for (size_t v = 0; v < vectors; v++) {
      sums->of[row][v] = add_products(sums->of[row][v], planes[v].lower, lower);
      vint* of_upper = apart ? &sums->of_upper[row][v] : &sums->of[row][v];
      *of_upper = add_products(*of_upper, planes[v].upper, upper);
    }
  }
  return weights + CHANNELS * PLANE;
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
// Sums of 32 bits, which continue others.
static XNN_INLINE vint first_sum(vint sum) { return sum; }
static XNN_INLINE vint last_sum(vint sum, vint last) { return last; }
#else
// Sums of 16 bits, which are added to others.
static XNN_INLINE vint first_sum(vint sum) { return vint_zero(); }
static XNN_INLINE vint last_sum(vint sum, vint last) {
  return VINT(add_epi32, sum, VINT(madd_epi16, last, VINT(set1_epi16, 1)));
}
#endif

// Adds products of `inputs` inputs, at most a group, from input `k` of the rows on, and returns the address behind the weights.
static XNN_INLINE const uint8_t* add_group(
    size_t rows, size_t vectors, size_t inputs, const int8_t* const from[ROWS], size_t k, const uint8_t* weights, struct sums* sums)
{
  struct sums last = *sums;
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < vectors; v++) {
      last.of[row][v] = first_sum(sums->of[row][v]);
    }
  }
  if (inputs == GROUP) {
    UNROLL for (size_t i = 0; i < GROUP; i += STEP) {
      weights = add_step(rows, vectors, from, k + i, weights, &last);
    }
  } else {
    for (size_t i = 0; i < inputs; i += STEP) {
      weights = add_step(rows, vectors, from, k + i, weights, &last);
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < vectors; v++) {
      sums->of[row][v] = last_sum(sums->of[row][v], last.of[row][v]);
      if (are_apart(rows)) {
        sums->of_upper[row][v] = last.of_upper[row][v];
      }
    }
  }
  return weights;
}

// Loads a vector of scales, of which only the upper halves are stored.
static XNN_INLINE vfloat scales_of_block(const uint8_t* from) {
#ifdef __AVX512F__
  const __m256i upper = _mm256_loadu_si256((const __m256i*) from);
#elif defined(__AVX2__)
  const __m128i upper = _mm_loadu_si128((const __m128i*) from);
#else
  const __m128i upper = _mm_loadl_epi64((const __m128i*) from);
#endif
  return vfloat_of_bits(VINT(slli_epi32, VINT(cvtepu16_epi32, upper), 16));
}

// Adds the products of a block, times its scales, and returns the address behind them.
static XNN_INLINE const uint8_t* add_block(
    size_t rows, size_t vectors, const struct rows* input, size_t k, const int32_t offsets[ROWS], const uint8_t* weights,
    vfloat scaled[ROWS][VECTORS])
{
  struct sums sums;
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < vectors; v++) {
      sums.of[row][v] = VINT(set1_epi32, offsets[row]);
      sums.of_upper[row][v] = vint_zero();
    }
  }
  for (const size_t end = k + input->block; k < end; k += GROUP) {
    weights = add_group(rows, vectors, GROUP, input->from, k, weights, &sums);
  }
  UNROLL for (size_t v = 0; v < vectors; v++) {
    const vfloat by = scales_of_block(weights + v * VECTOR_LANES * sizeof(uint16_t));
    UNROLL for (size_t row = 0; row < rows; row++) {
      // Packed scales are a 16th.
      vint sum = VINT(slli_epi32, sums.of[row][v], 4);
      if (are_apart(rows)) {
        sum = VINT(add_epi32, sum, sums.of_upper[row][v]);
      }
      scaled[row][v] = vfloat_add_product(scaled[row][v], VINT(cvtepi32_ps, sum), by);
    }
  }
  return weights + CHANNELS * sizeof(uint16_t);
}

// OF_BLOCKS: computes sums times the scales of blocks, and returns the address behind the weights.
static XNN_INLINE const uint8_t* sum_of_blocks(
    size_t rows, size_t vectors, bool is_first, const struct rows* input, const uint8_t* weights, struct offsets* offsets,
    vfloat scaled[ROWS][VECTORS])
{
  UNROLL for (size_t v = 0; v < vectors; v++) {
    const vfloat sums_of_weights = VINT(loadu_ps, (const float*) weights + v * VECTOR_LANES);
    UNROLL for (size_t row = 0; row < rows; row++) {
      scaled[row][v] = VINT(mul_ps, sums_of_weights, VINT(set1_ps, (float) input->quantization[row]->zero_point));
    }
  }
  weights += CHANNELS * sizeof(float);
  const size_t blocks = input->depth / input->block;
  for (size_t block = 0; block < blocks; block++) {
    if (block % MAX_BLOCKS == 0 && (is_first || blocks > MAX_BLOCKS)) {
      find_offsets(rows, input, block, offsets);
    }
    weights = add_block(rows, vectors, input, block * input->block, offsets->of_blocks[block % MAX_BLOCKS], weights, scaled);
  }
  return weights;
}

// OF_CHANNELS: computes sums, and returns the address behind the weights.
static XNN_INLINE const uint8_t* sum_of_channels(
    size_t rows, size_t vectors, bool is_first, const struct rows* input, const uint8_t* weights, struct offsets* offsets,
    vfloat scaled[ROWS][VECTORS])
{
  if (is_first) {
    find_offsets_of_rows(rows, input, offsets);
  }
  struct sums sums;
  UNROLL for (size_t v = 0; v < vectors; v++) {
    // Packed as 16 times the sum of weights.
    const vint sums_of_weights = VINT(srai_epi32, vint_load(weights + v * sizeof(vint)), 4);
    UNROLL for (size_t row = 0; row < rows; row++) {
      const vint of_zero_point = VINT(mullo_epi32, sums_of_weights, VINT(set1_epi32, input->quantization[row]->zero_point));
      sums.of[row][v] = VINT(add_epi32, of_zero_point, VINT(set1_epi32, offsets->of_blocks[0][row]));
      sums.of_upper[row][v] = vint_zero();
    }
  }
  weights += CHANNELS * sizeof(int32_t);
  size_t k = 0;
  for (; input->depth - k >= GROUP; k += GROUP) {
    weights = add_group(rows, vectors, GROUP, input->from, k, weights, &sums);
  }
  if (k != input->depth) {
    const int8_t* rest[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      rest[row] = input->rest[row];
    }
    weights = add_group(rows, vectors, input->depth - k, rest, 0, weights, &sums);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < vectors; v++) {
      if (are_apart(rows)) {
        sums.of[row][v] = VINT(add_epi32, sums.of[row][v], VINT(srai_epi32, sums.of_upper[row][v], 4));
      }
      scaled[row][v] = VINT(cvtepi32_ps, sums.of[row][v]);
    }
  }
  return weights;
}

// Computes the first `vectors` vectors of a tile, up to `nc` channels of `mr` rows, and returns the address behind its weights.
static XNN_INLINE const uint8_t* tile(
    enum scales scales, size_t rows, size_t vectors, size_t mr, size_t nc, bool is_first, const struct rows* input, const uint8_t* weights,
    const struct output* output, struct offsets* offsets)
{
  vfloat scaled[ROWS][VECTORS];
  weights = scales == OF_BLOCKS ? sum_of_blocks(rows, vectors, is_first, input, weights, offsets, scaled)
                                : sum_of_channels(rows, vectors, is_first, input, weights, offsets, scaled);
  const float* by = (const float*) weights;
  const float* biases = scales == OF_BLOCKS ? by : by + CHANNELS;
  UNROLL for (size_t v = 0; v < vectors; v++) {
    const size_t channel = v * VECTOR_LANES;
    const vfloat bias = VINT(loadu_ps, biases + channel);
    UNROLL for (size_t row = 0; row < rows; row++) {
      if (row < mr && channel < nc) {
        const vfloat of_row = VINT(mul_ps, scaled[row][v], VINT(set1_ps, input->quantization[row]->inv_scale));
        const vfloat sum = scales == OF_BLOCKS ? VINT(add_ps, of_row, bias)
                                               : vfloat_add_product(bias, of_row, VINT(loadu_ps, by + channel));
        float* to = (float*) ((uintptr_t) output->at + row * output->row_stride) + channel;
        vfloat_store(to, vfloat_clamp(sum, output->min, output->max), nc - channel);
      }
    }
  }
  return (const uint8_t*) (biases + CHANNELS);
}

static XNN_INLINE void multiply_tiles(
    enum scales scales, size_t rows, size_t mr, size_t nc, const struct rows* input, const uint8_t* weights,
    struct output output)
{
  struct offsets offsets;
  for (bool is_first = true;; is_first = false) {
    weights = nc > VECTOR_LANES ? tile(scales, rows, VECTORS, mr, nc, is_first, input, weights, &output, &offsets)
                                : tile(scales, rows, 1, mr, nc, is_first, input, weights, &output, &offsets);
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    output.at = (float*) ((uintptr_t) output.at + output.tile_stride);
  }
}

// Rows behind the last of `mr` repeat it.
static XNN_INLINE void find_rows(
    size_t rows, size_t mr, const int8_t* at, size_t stride, const struct xnn_qd8_quantization_params* quantization,
    struct rows* input)
{
  const size_t whole = round_down_po2(input->depth, GROUP);
  for (size_t row = 0; row < rows; row++) {
    const size_t place = min(row, mr - 1);
    input->from[row] = at + place * stride;
    input->quantization[row] = quantization + place;
    if (whole != input->depth) {
      memset(input->rest[row], 0, GROUP);
      memcpy(input->rest[row], input->from[row] + whole, input->depth - whole);
    }
  }
}

#define GEMM(scales, tile_rows, size_of_block) \
  ASSERT_GEMM(tile_rows, 1); \
  struct rows input = {.depth = kc, .block = size_of_block}; \
  find_rows(tile_rows, mr, a, a_stride, quantization_params, &input); \
  const struct output output = { \
      .at = c, .row_stride = cm_stride, .tile_stride = cn_stride, .min = VINT(set1_ps, params->scalar.min), \
      .max = VINT(set1_ps, params->scalar.max)}; \
  multiply_tiles(scales, tile_rows, mr, nc, &input, w, output)

#define MICROKERNELS(rows, suffix) \
  QC4W_GEMM(WITH_ISA(xnnpack_sys_qd8_f32_qc4w_gemm_minmax_ukernel_##suffix##__)) { GEMM(OF_CHANNELS, rows, 0); } \
  QB4W_GEMM(WITH_ISA(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_##suffix##__)) { \
    GEMM(OF_BLOCKS, rows, params->scalar.blocksize); \
  }
