// Matrix products of 8-bit integers for NEON without dot products, see `gemm_q8_neon.h`.
//
// Two products are added in 16 bits, which overflows for two products of -128 and -128: these microkernels are for weights among which no
// two of -128 meet (`config/q8_exact_config.c`).
//
// For uint8, 128 is subtracted from inputs as they are copied, and from weights as they are packed (`config/q8_neon_config.c`).
//
// A row's inputs are multiplied by those of a channel, 16 at a time, so that neither has to be repeated for each element of a vector. Sums of
// a row and a channel are four, which are added at the end. The inputs of up to three rows are copied once, see `gemm_q8_neon_buffer.h`.
//
// `kind` and `rows` are constants wherever these functions are inlined.

#include "ukernels/gemm_q8_neon.h"

#define DEPTH (1 << Q8_NEON_PAIRS_LOG2_DEPTH)
#define MAX_ROWS Q8_NEON_PAIRS_ROWS
#define STEPS 256
#define OFFSET 128

#include "ukernels/gemm_q8_neon_buffer.h"

// Channels whose sums are in registers, and bytes of their weights for a step.
#define HALF (CHANNELS / 2)
#define HALF_BYTES (HALF * DEPTH)

// Products of a channel's weights, in vector `w`, with inputs of each row. `add` adds pairs of products to sums, or begins with them.
#define CHANNEL_OF_1(add, w, s0, s1, s2) \
  "smull v29.8h, v24.8b, v" w ".8b\n\t" \
  "smlal2 v29.8h, v24.16b, v" w ".16b\n\t" add " v" s0 ".4s, v29.8h\n\t"
#define CHANNEL_OF_3(add, w, s0, s1, s2) \
  "smull v29.8h, v24.8b, v" w ".8b\n\t" \
  "smull v30.8h, v25.8b, v" w ".8b\n\t" \
  "smull v31.8h, v26.8b, v" w ".8b\n\t" \
  "smlal2 v29.8h, v24.16b, v" w ".16b\n\t" \
  "smlal2 v30.8h, v25.16b, v" w ".16b\n\t" \
  "smlal2 v31.8h, v26.16b, v" w ".16b\n\t" add " v" s0 ".4s, v29.8h\n\t" add " v" s1 ".4s, v30.8h\n\t" add \
  " v" s2 ".4s, v31.8h\n\t"

#define LOAD_INPUTS_OF_1 "ld1 {v24.16b}, [%[from]], #16\n\t"
#define LOAD_INPUTS_OF_3 "ld1 {v24.16b-v26.16b}, [%[from]], #48\n\t"
#define LOAD_WEIGHTS(increment) "ld1 {v27.16b-v28.16b}, [%[weights]], " increment "\n\t"

// The last increment goes to the weights of these channels for the next step.
#define STEP_OF(rows, add) \
  LOAD_INPUTS_OF_##rows LOAD_WEIGHTS("#32") CHANNEL_OF_##rows(add, "27", "0", "8", "16") \
      CHANNEL_OF_##rows(add, "28", "1", "9", "17") LOAD_WEIGHTS("#32") CHANNEL_OF_##rows(add, "27", "2", "10", "18") \
          CHANNEL_OF_##rows(add, "28", "3", "11", "19") LOAD_WEIGHTS("#32") \
              CHANNEL_OF_##rows(add, "27", "4", "12", "20") CHANNEL_OF_##rows(add, "28", "5", "13", "21") \
                  LOAD_WEIGHTS("%[skip]") CHANNEL_OF_##rows(add, "27", "6", "14", "22") \
                      CHANNEL_OF_##rows(add, "28", "7", "15", "23")

// Adds the four sums of each channel of a row, and stores them.
#define ADD_NEIGHBOURS(to, a, b) "addp v" to ".4s, v" a ".4s, v" b ".4s\n\t"
#define STORE_SUMS(s0, s1, s2, s3, s4, s5, s6, s7) \
  ADD_NEIGHBOURS(s0, s0, s1) ADD_NEIGHBOURS(s2, s2, s3) ADD_NEIGHBOURS(s4, s4, s5) ADD_NEIGHBOURS(s6, s6, s7) \
  ADD_NEIGHBOURS(s0, s0, s2) ADD_NEIGHBOURS(s1, s4, s6) "st1 {v" s0 ".4s-v" s1 ".4s}, [%[to]], %[of_row]\n\t"
#define STORE_SUMS_OF_1 STORE_SUMS("0", "1", "2", "3", "4", "5", "6", "7")
#define STORE_SUMS_OF_3 \
  STORE_SUMS_OF_1 STORE_SUMS("8", "9", "10", "11", "12", "13", "14", "15") \
      STORE_SUMS("16", "17", "18", "19", "20", "21", "22", "23")

#define MULTIPLY(rows) \
  __asm__ volatile(STEP_OF(rows, "saddlp") "subs %[steps], %[steps], #1\n\t" \
                   "b.eq 2f\n" \
                   "1:\n\t" STEP_OF(rows, "sadalp") "subs %[steps], %[steps], #1\n\t" \
                   "b.ne 1b\n" \
                   "2:\n\t" STORE_SUMS_OF_##rows \
                   : [to] "+r"(to), [from] "+r"(from), [steps] "+r"(steps), [weights] "+r"(weights) \
                   : [skip] "r"((size_t) (HALF_BYTES + 2 * DEPTH)), \
                     [of_row] "r"((size_t) (CHANNELS * sizeof(int32_t))) \
                   : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", \
                     "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", \
                     "v29", "v30", "v31")

// Sums products of the buffer's inputs with weights of half of the channels. At least one step.
static XNN_INLINE void multiply_half(
    size_t rows, int32_t* to, const struct buffer* buffer, size_t steps, const uint8_t* weights)
{
  const uint8_t* from = buffer->inputs;
  if (rows == 1) {
    MULTIPLY(1);
  } else {
    MULTIPLY(3);
  }
}

// Adds products of the buffer's inputs to sums, and returns the address behind the weights.
static XNN_INLINE const uint8_t* multiply(
    size_t rows, int32x4_t sums[MAX_ROWS][VECTORS], const struct buffer* buffer, size_t steps, const uint8_t* weights)
{
  int32_t products[MAX_ROWS][CHANNELS];
  multiply_half(rows, products[0], buffer, steps, weights);
  multiply_half(rows, products[0] + HALF, buffer, steps, weights + HALF_BYTES);
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[row][v] = vaddq_s32(sums[row][v], vld1q_s32(&products[row][4 * v]));
    }
  }
  return weights + steps * 2 * HALF_BYTES;
}

static XNN_INLINE uint8_t flip_of(enum kind kind) { return kind == UNSIGNED ? OFFSET : 0; }

// Adds the buffer's inputs of each row.
static XNN_INLINE void add_inputs(size_t rows, const struct buffer* buffer, size_t steps, int32x4_t sums[MAX_ROWS]) {
  const uint8_t* from = buffer->inputs;
  for (; steps > 0; steps--) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      sums[row] = vpadalq_s16(sums[row], vpaddlq_s8(vreinterpretq_s8_u8(vld1q_u8(from))));
      from += DEPTH;
    }
  }
}

// UNSIGNED: computes what the zero point of the weights contributes to sums of each row. `steps` as in `tile`.
static XNN_INLINE void find_offsets(
    size_t rows, const struct product* product, struct buffer* buffer, size_t steps, int32x4_t offsets[MAX_ROWS])
{
  int32x4_t sums[MAX_ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    sums[row] = vdupq_n_s32(0);
  }
  if (steps != 0) {
    add_inputs(rows, buffer, steps, sums);
  } else {
    struct cursor cursor = {0};
    while (cursor.position != product->input.positions) {
      const size_t some = fill(rows, &product->input, &cursor, OFFSET, buffer);
      add_inputs(rows, buffer, some, sums);
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    offsets[row] = vdupq_n_s32(vaddvq_s32(sums[row]) * (OFFSET - product->zero_point));
  }
}

// Computes the first `channels` channels of a tile, and returns the end of its weights. The buffer has all inputs if `steps` is not 0.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, size_t rows, size_t mr, size_t channels, const struct product* product, struct buffer* buffer,
    size_t steps, const int32x4_t offsets[MAX_ROWS], const uint8_t* weights)
{
  int32x4_t start[VECTORS];
  load_start(kind, product, weights, start);
  weights += CHANNELS * sizeof(int32_t);
  int32x4_t sums[MAX_ROWS][VECTORS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[row][v] = start_of_row(kind, product, row, start[v]);
      sums[row][v] = kind == UNSIGNED ? vaddq_s32(sums[row][v], offsets[row]) : sums[row][v];
    }
  }
  if (steps != 0) {
    weights = multiply(rows, sums, buffer, steps, weights);
  } else {
    struct cursor cursor = {0};
    while (cursor.position != product->input.positions) {
      const size_t some = fill(rows, &product->input, &cursor, flip_of(kind), buffer);
      weights = multiply(rows, sums, buffer, some, weights);
    }
  }
  struct scales scales;
  weights = load_scales(kind, weights, &scales);
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (row < mr) {
      store_row(kind, &product->output, row, sums[row], &scales, channels);
    }
  }
  return weights;
}

static XNN_INLINE void multiply_rows(
    enum kind kind, size_t rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  struct buffer buffer;
  const size_t all = steps_of(&product.input);
  const size_t steps = all <= STEPS ? all : 0;
  if (steps != 0) {
    fill_with_all(rows, &product.input, flip_of(kind), &buffer);
  }
  int32x4_t offsets[MAX_ROWS];
  if (kind == UNSIGNED) {
    find_offsets(rows, &product, &buffer, steps, offsets);
  }
  FOR_EACH_TILE(weights = tile(kind, rows, mr, nc, &product, &buffer, steps, offsets, weights))
}

static XNN_INLINE void multiply_tiles(
    enum kind kind, size_t tile_rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  if (tile_rows == 1 || mr == 1) {
    multiply_rows(kind, 1, mr, nc, product, weights, tile_stride);
  } else {
    multiply_rows(kind, 3, mr, nc, product, weights, tile_stride);
  }
}

#include "ukernels/gemm_q8_neon_define.h"

DEFINE_UNSIGNED(1, qu8, 1x16c16__neon)
DEFINE_UNSIGNED(3, qu8, 3x16c16__neon)
DEFINE_SIGNED(1, 1x16c16__neon)
DEFINE_SIGNED(3, 3x16c16__neon)
DEFINE_DYNAMIC(1, 1x16c16__neon)
DEFINE_DYNAMIC(3, 3x16c16__neon)
DEFINE_DYNAMIC_ROWS(1, 1x16c16__neon)
DEFINE_DYNAMIC_ROWS(3, 3x16c16__neon)
