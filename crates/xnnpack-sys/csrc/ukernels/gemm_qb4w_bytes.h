// Matrix products of rows quantized at run time with 4-bit weights that have a scale for each block, without AVX512-VNNI: included by a
// file for each instruction set, which defines `ISA`, and `ROWS` of the tile. Vectors are as wide as the instruction set
// (`vector_x86.h`), and a tile has two of them.
//
// XNNPACK widens inputs and weights to 16 bits. Here one instruction multiplies bytes: weights with 8 added, which are unsigned, by
// signed inputs. Two products are at most 2 * 15 * 128, so that 16 bits hold the sum of 16 of them, those of the least block. 8 times
// the sum of a block's inputs is subtracted from the products of all channels.
//
// `rows` is a constant wherever these functions are inlined, so that loops over it are unrolled and arrays become registers.

#include "ukernels/gemm_qb4w_bytes_api.h"

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

#define DEPTH (1 << QB4W_BYTES_LOG2_DEPTH)
#define VECTORS 2
#define CHANNELS (VECTORS * VECTOR_LANES)
// Inputs of which 16 bits hold the products.
#define GROUP XNN_MIN_BLOCKSIZE
// Blocks of which sums of inputs are in memory at once.
#define MAX_BLOCKS 128
// What is added to weights.
#define OFFSET 8
#define UNROLL _Pragma("GCC unroll 8")

struct rows {
  const int8_t* from[ROWS];
  const struct xnn_qd8_quantization_params* quantization[ROWS];
  size_t depth;
  // Inputs of a block.
  size_t block;
};

struct output {
  float* at;
  size_t row_stride;
  size_t tile_stride;
  vfloat min;
  vfloat max;
};

// Sums of the inputs of some blocks, times -OFFSET.
struct offsets {
  int32_t of_blocks[MAX_BLOCKS][ROWS];
};

// Returns the sum of `count` inputs, a multiple of 16.
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

static XNN_INLINE vint four_inputs(const int8_t* from) {
  int32_t four;
  memcpy(&four, from, sizeof(four));
  return VINT(set1_epi32, four);
}

#ifdef __AVXVNNI__
#define WITHOUT_WORDS
#endif

// Adds products of four inputs of a row: to sums of 32 bits where an instruction does so, otherwise of 16.
static XNN_INLINE vint add_products(vint sums, vint weights, const int8_t* inputs) {
#ifdef WITHOUT_WORDS
  return _mm256_dpbusd_avx_epi32(sums, weights, four_inputs(inputs));
#else
  return VINT(add_epi16, sums, VINT(maddubs_epi16, weights, four_inputs(inputs)));
#endif
}

// Adds products of GROUP inputs, from input `k` of the rows on, and returns the address behind the weights.
static XNN_INLINE const uint8_t* add_group(
    size_t rows, const struct rows* input, size_t k, const uint8_t* weights, vint sums[ROWS][VECTORS])
{
  vint words[ROWS][VECTORS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
#ifdef WITHOUT_WORDS
      words[row][v] = sums[row][v];
#else
      words[row][v] = vint_zero();
#endif
    }
  }
  UNROLL for (size_t i = 0; i < GROUP; i += 2 * DEPTH) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      // Packed as signed numbers.
      const vint both = VINT_BITS(xor, vint_load(weights), VINT(set1_epi8, (int8_t) (OFFSET << 4 | OFFSET)));
      const vint nibble = VINT(set1_epi8, 0x0F);
      const vint lower = VINT_BITS(and, both, nibble);
      const vint upper = VINT_BITS(and, VINT(srli_epi16, both, 4), nibble);
      UNROLL for (size_t row = 0; row < rows; row++) {
        const int8_t* inputs = input->from[row] + k + i;
        words[row][v] = add_products(add_products(words[row][v], lower, inputs), upper, inputs + DEPTH);
      }
      weights += sizeof(vint);
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
#ifdef WITHOUT_WORDS
      sums[row][v] = words[row][v];
#else
      sums[row][v] = VINT(add_epi32, sums[row][v], VINT(madd_epi16, words[row][v], VINT(set1_epi16, 1)));
#endif
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
    size_t rows, const struct rows* input, size_t k, const int32_t offsets[ROWS], const uint8_t* weights,
    vfloat scaled[ROWS][VECTORS])
{
  vint sums[ROWS][VECTORS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[row][v] = VINT(set1_epi32, offsets[row]);
    }
  }
  for (const size_t end = k + input->block; k < end; k += GROUP) {
    weights = add_group(rows, input, k, weights, sums);
  }
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const vfloat scales = scales_of_block(weights);
    UNROLL for (size_t row = 0; row < rows; row++) {
      // Packed scales are a 16th.
      const vfloat sum = VINT(cvtepi32_ps, VINT(slli_epi32, sums[row][v], 4));
      scaled[row][v] = vfloat_add_product(scaled[row][v], sum, scales);
    }
    weights += VECTOR_LANES * sizeof(uint16_t);
  }
  return weights;
}

// Computes a tile of up to `nc` channels of `mr` rows, and returns the address behind its weights.
static XNN_INLINE const uint8_t* tile(
    size_t rows, size_t mr, size_t nc, bool is_first, const struct rows* input, const uint8_t* weights,
    const struct output* output, struct offsets* offsets)
{
  vfloat scaled[ROWS][VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const vfloat sums_of_weights = VINT(loadu_ps, (const float*) weights);
    UNROLL for (size_t row = 0; row < rows; row++) {
      scaled[row][v] = VINT(mul_ps, sums_of_weights, VINT(set1_ps, (float) input->quantization[row]->zero_point));
    }
    weights += sizeof(vfloat);
  }
  const size_t blocks = input->depth / input->block;
  for (size_t block = 0; block < blocks; block++) {
    if (block % MAX_BLOCKS == 0 && (is_first || blocks > MAX_BLOCKS)) {
      find_offsets(rows, input, block, offsets);
    }
    weights = add_block(rows, input, block * input->block, offsets->of_blocks[block % MAX_BLOCKS], weights, scaled);
  }
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const vfloat bias = VINT(loadu_ps, (const float*) weights);
    UNROLL for (size_t row = 0; row < rows; row++) {
      const size_t channel = v * VECTOR_LANES;
      if (row < mr && channel < nc) {
        const vfloat of_row = VINT(mul_ps, scaled[row][v], VINT(set1_ps, input->quantization[row]->inv_scale));
        float* to = (float*) ((uintptr_t) output->at + row * output->row_stride) + channel;
        vfloat_store(to, vfloat_clamp(VINT(add_ps, of_row, bias), output->min, output->max), nc - channel);
      }
    }
    weights += sizeof(vfloat);
  }
  return weights;
}

static XNN_INLINE void multiply_tiles(
    size_t rows, size_t mr, size_t nc, const struct rows* input, const uint8_t* weights, struct output output)
{
  struct offsets offsets;
  for (bool is_first = true;; is_first = false) {
    weights = tile(rows, mr, nc, is_first, input, weights, &output, &offsets);
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    output.at = (float*) ((uintptr_t) output.at + output.tile_stride);
  }
}

// Rows behind the last of `mr` repeat it.
#define MICROKERNEL(tile_rows, suffix) \
  QB4W_GEMM(WITH_ISA(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_##suffix##__)) { \
    ASSERT_GEMM(tile_rows, 1); \
    struct rows input = {.depth = kc, .block = params->scalar.blocksize}; \
    for (size_t row = 0; row < (tile_rows); row++) { \
      input.from[row] = a + min(row, mr - 1) * a_stride; \
      input.quantization[row] = quantization_params + min(row, mr - 1); \
    } \
    const struct output output = { \
        .at = c, .row_stride = cm_stride, .tile_stride = cn_stride, .min = VINT(set1_ps, params->scalar.min), \
        .max = VINT(set1_ps, params->scalar.max)}; \
    multiply_tiles(tile_rows, mr, nc, &input, w, output); \
  }
