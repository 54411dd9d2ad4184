// Matrix products of 8-bit integers for NEON with matrix products (i8mm), see `gemm_q8_neon.h`.
//
// An instruction multiplies eight inputs of two rows by weights of two channels. XNNPACK combines inputs of two rows for each tile of 16
// channels, with four rows at a time. Here the inputs of up to six rows are copied once, in the order in which they are multiplied: each
// step of the loop loads them, and weights of 16 channels, with three instructions for 24 products. The copy ends each position of a
// convolution with zeros where XNNPACK's weights end with padding. Inputs that only one tile needs are not copied.
//
// `kind` and `rows` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become registers.

#include "ukernels/gemm_q8_neon.h"

// Inputs of a row that are multiplied at once.
#define DEPTH (1 << Q8_NEONI8MM_LOG2_DEPTH)
#define MAX_ROWS Q8_NEONI8MM_ROWS
#define MAX_PAIRS (MAX_ROWS / 2)
// Vectors of weights of a step, of two channels each, and bytes of half of them.
#define CHANNEL_PAIRS (CHANNELS / 2)
#define HALF (CHANNELS * DEPTH / 2)

#define STEPS 256

#include "ukernels/gemm_q8_neon_buffer.h"

static XNN_INLINE size_t pairs_of(size_t rows) { return (rows + 1) / 2; }

// The inputs of a step for pairs of rows. A single row is both of a pair.
static XNN_INLINE void load_inputs(size_t rows, const uint8_t* from, uint8x16_t to[MAX_PAIRS]) {
  if (rows == 1) {
    to[0] = vreinterpretq_u8_u64(vld1q_dup_u64((const uint64_t*) from));
    return;
  }
  UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
    to[pair] = vld1q_u8(from + pair * 2 * DEPTH);
  }
}

// Sums for pairs of rows: those of the first row and two channels, and of the second row.
typedef int32_t pair_sums[CHANNEL_PAIRS][4];

// Products of the inputs of a pair of rows, in vector `a`, and the weights of eight channels, in vectors 28 to 31.
#define PRODUCTS(instruction, a, s0, s1, s2, s3) \
  instruction " v" s0 ".4s, v" a ".16b, v28.16b\n\t" instruction " v" s1 ".4s, v" a ".16b, v29.16b\n\t" instruction \
      " v" s2 ".4s, v" a ".16b, v30.16b\n\t" instruction " v" s3 ".4s, v" a ".16b, v31.16b\n\t"

#define LOAD_WEIGHTS "ld1 {v28.16b-v31.16b}, [%[weights]], #64\n\t"
#define FIRST_OF_PAIR_0(instruction) PRODUCTS(instruction, "24", "0", "1", "2", "3")
#define SECOND_OF_PAIR_0(instruction) PRODUCTS(instruction, "24", "4", "5", "6", "7")
#define FIRST_OF_PAIR_1(instruction) PRODUCTS(instruction, "25", "8", "9", "10", "11")
#define SECOND_OF_PAIR_1(instruction) PRODUCTS(instruction, "25", "12", "13", "14", "15")
#define FIRST_OF_PAIR_2(instruction) PRODUCTS(instruction, "26", "16", "17", "18", "19")
#define SECOND_OF_PAIR_2(instruction) PRODUCTS(instruction, "26", "20", "21", "22", "23")

// Products of a step for a number of rows.
#define PRODUCTS_OF_1(instruction) LOAD_WEIGHTS FIRST_OF_PAIR_0(instruction) LOAD_WEIGHTS SECOND_OF_PAIR_0(instruction)
#define PRODUCTS_OF_2 PRODUCTS_OF_1
#define PRODUCTS_OF_4(instruction) \
  LOAD_WEIGHTS FIRST_OF_PAIR_0(instruction) FIRST_OF_PAIR_1(instruction) LOAD_WEIGHTS SECOND_OF_PAIR_0(instruction) \
      SECOND_OF_PAIR_1(instruction)
#define PRODUCTS_OF_6(instruction) \
  LOAD_WEIGHTS FIRST_OF_PAIR_0(instruction) FIRST_OF_PAIR_1(instruction) FIRST_OF_PAIR_2(instruction) LOAD_WEIGHTS \
      SECOND_OF_PAIR_0(instruction) SECOND_OF_PAIR_1(instruction) SECOND_OF_PAIR_2(instruction)

// A step whose inputs are in the buffer.
#define STEP_OF_1(instruction) "ld1r {v24.2d}, [%[from]], #8\n\t" PRODUCTS_OF_1(instruction)
#define STEP_OF_2(instruction) "ld1 {v24.16b}, [%[from]], #16\n\t" PRODUCTS_OF_2(instruction)
#define STEP_OF_4(instruction) "ld1 {v24.16b-v25.16b}, [%[from]], #32\n\t" PRODUCTS_OF_4(instruction)
#define STEP_OF_6(instruction) "ld1 {v24.16b-v26.16b}, [%[from]], #48\n\t" PRODUCTS_OF_6(instruction)

#define MOVE_PAIR_0(move, at) \
  move " {v0.4s-v3.4s}, [%[" at "]], #64\n\t" move " {v4.4s-v7.4s}, [%[" at "]], #64\n\t"
#define MOVE_PAIR_1(move, at) \
  move " {v8.4s-v11.4s}, [%[" at "]], #64\n\t" move " {v12.4s-v15.4s}, [%[" at "]], #64\n\t"
#define MOVE_PAIR_2(move, at) \
  move " {v16.4s-v19.4s}, [%[" at "]], #64\n\t" move " {v20.4s-v23.4s}, [%[" at "]], #64\n\t"
#define MOVE_1(move, at) MOVE_PAIR_0(move, at)
#define MOVE_2(move, at) MOVE_PAIR_0(move, at)
#define MOVE_4(move, at) MOVE_PAIR_0(move, at) MOVE_PAIR_1(move, at)
#define MOVE_6(move, at) MOVE_PAIR_0(move, at) MOVE_PAIR_1(move, at) MOVE_PAIR_2(move, at)

#define CLOBBERED \
  "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
      "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v28", "v29", "v30", "v31"

// Two steps at a time. An odd number begins with the second. In assembly because GCC 12 keeps some sums in memory, or moves them to other
// registers around the loop.
#define MULTIPLY(rows, instruction) \
  __asm__ volatile(MOVE_##rows("ld1", "sums") "tbnz %[steps], #0, 2f\n" \
                   "1:\n\t" STEP_OF_##rows(instruction) \
                   "2:\n\t" STEP_OF_##rows(instruction) \
                   "subs %[steps], %[steps], #2\n\t" \
                   "b.hi 1b\n\t" MOVE_##rows("st1", "to") \
                   : [sums] "+r"(sums), [to] "+r"(to), [from] "+r"(from), [steps] "+r"(steps), [weights] "+r"(weights) \
                   : \
                   : CLOBBERED)

#define MULTIPLY_ROWS(instruction) \
  if (rows == 1) { \
    MULTIPLY(1, instruction); \
  } else if (rows == 2) { \
    MULTIPLY(2, instruction); \
  } else if (rows == 4) { \
    MULTIPLY(4, instruction); \
  } else { \
    MULTIPLY(6, instruction); \
  }

// Adds products of the buffer's inputs, and returns the address behind the weights.
static XNN_INLINE const uint8_t* multiply(
    enum kind kind, size_t rows, pair_sums* sums, const struct buffer* buffer, size_t steps, const uint8_t* weights)
{
  const uint8_t* from = buffer->inputs;
  pair_sums* to = sums;
  if (kind == UNSIGNED) {
    MULTIPLY_ROWS("ummla")
  } else {
    MULTIPLY_ROWS("smmla")
  }
  return weights;
}

// Loads the address of a row at a position.
#define ADDRESS(row) \
  "ldr %[a" row "], [%[rows]], #8\n\t" \
  "cmp %[a" row "], %[zero]\n\t" \
  "add %[a" row "], %[a" row "], %[offset]\n\t" \
  "csel %[a" row "], %[padding], %[a" row "], eq\n\t"
#define ADDRESSES_OF_1 ADDRESS("0")
#define ADDRESSES_OF_2 ADDRESSES_OF_1 ADDRESS("1")
#define ADDRESSES_OF_4 ADDRESSES_OF_2 ADDRESS("2") ADDRESS("3")
#define ADDRESSES_OF_6 ADDRESSES_OF_4 ADDRESS("4") ADDRESS("5")

// Loads inputs of a step of two rows.
#define LOAD_PAIR(a, first, second) \
  "ldr d" a ", [%[a" first "]], #8\n\t" \
  "ld1 {v" a ".d}[1], [%[a" second "]], #8\n\t"
#define LOAD_FROM_1 "ld1r {v24.2d}, [%[a0]], #8\n\t"
#define LOAD_FROM_2 LOAD_PAIR("24", "0", "1")
#define LOAD_FROM_4 LOAD_FROM_2 LOAD_PAIR("25", "2", "3")
#define LOAD_FROM_6 LOAD_FROM_4 LOAD_PAIR("26", "4", "5")

#define MULTIPLY_DIRECTLY(number) \
  __asm__ volatile(MOVE_##number("ld1", "sums") "1:\n\t" ADDRESSES_OF_##number "add %[rows], %[rows], %[skip]\n\t" \
                   "mov %[steps], %[steps_of_position]\n" \
                   "2:\n\t" LOAD_FROM_##number PRODUCTS_OF_##number("smmla") "subs %[steps], %[steps], #1\n\t" \
                   "b.ne 2b\n\t" \
                   "subs %[positions], %[positions], #1\n\t" \
                   "b.ne 1b\n\t" MOVE_##number("st1", "to") \
                   : [sums] "+r"(sums), [to] "+r"(to), [rows] "+r"(from), [positions] "+r"(positions), \
                     [weights] "+r"(weights), [steps] "=&r"(steps), [a0] "=&r"(a[0]), [a1] "=&r"(a[1]), [a2] "=&r"(a[2]), \
                     [a3] "=&r"(a[3]), [a4] "=&r"(a[4]), [a5] "=&r"(a[5]) \
                   : [zero] "r"(input->zero), [padding] "r"(input->padding), [offset] "r"(input->offset), \
                     [skip] "r"((input->rows_of_position - (number)) * sizeof(void*)), \
                     [steps_of_position] "r"(divide_round_up(input->depth, DEPTH)) \
                   : CLOBBERED)

// Adds products of all inputs, which are not copied: for few channels, or many inputs. Bytes behind a position are multiplied by weights
// of 0. Returns the address behind the weights.
static XNN_INLINE XNN_OOB_READS const uint8_t* multiply_directly(
    size_t rows, pair_sums* sums, const struct input* input, const uint8_t* weights)
{
  const uint8_t* const* from = input->rows;
  size_t positions = input->positions;
  pair_sums* to = sums;
  size_t steps;
  const uint8_t* a[MAX_ROWS];
  if (rows == 1) {
    MULTIPLY_DIRECTLY(1);
  } else if (rows == 2) {
    MULTIPLY_DIRECTLY(2);
  } else if (rows == 4) {
    MULTIPLY_DIRECTLY(4);
  } else {
    MULTIPLY_DIRECTLY(6);
  }
  return weights;
}

// Adds the sums of the buffer's inputs.
static XNN_INLINE void add_inputs(size_t rows, const struct buffer* buffer, size_t steps, uint32x4_t sums[MAX_PAIRS]) {
  const uint8_t* from = buffer->inputs;
  for (; steps != 0; steps--) {
    uint8x16_t inputs[MAX_PAIRS];
    load_inputs(rows, from, inputs);
    from += rows * DEPTH;
    UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
      sums[pair] = vmmlaq_u32(sums[pair], inputs[pair], vdupq_n_u8(1));
    }
  }
}

// A buffer of inputs.
struct inputs {
  struct buffer buffer;
  // Whether it has all of them. Otherwise UNSIGNED copies some at a time, and others multiply directly.
  bool is_complete;
  size_t steps;
  // For two rows, each twice: the contribution of the weights' zero point for UNSIGNED, and zero points for DYNAMIC_ROWS.
  int32x4_t offsets[MAX_PAIRS];
};

// Finds the contributions of the weights' zero point.
static XNN_INLINE void find_offsets(size_t rows, const struct product* product, struct inputs* inputs) {
  uint32x4_t sums[MAX_PAIRS];
  UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
    sums[pair] = vdupq_n_u32(0);
  }
  struct cursor cursor = {0};
  do {
    const size_t steps = inputs->is_complete ? inputs->steps : fill(rows, &product->input, &cursor, /*flip=*/0, &inputs->buffer);
    add_inputs(rows, &inputs->buffer, steps, sums);
  } while (!inputs->is_complete && cursor.position < product->input.positions);
  UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
    inputs->offsets[pair] = vmulq_n_s32(vreinterpretq_s32_u32(sums[pair]), -product->zero_point);
  }
}

// Copying pays if the inputs are multiplied by the weights of several tiles.
static XNN_INLINE void prepare(
    enum kind kind, size_t rows, size_t channels, const struct product* product, struct inputs* inputs)
{
  inputs->steps = steps_of(&product->input);
  inputs->is_complete = inputs->steps <= STEPS && (kind == UNSIGNED || channels > CHANNELS);
  if (inputs->is_complete) {
    fill_with_all(rows, &product->input, /*flip=*/0, &inputs->buffer);
  }
  if (kind == UNSIGNED) {
    find_offsets(rows, product, inputs);
  } else if (kind == DYNAMIC_ROWS) {
    UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
      const int32_t first = product->output.of_rows[2 * pair].zero_point;
      const int32_t second = rows == 1 ? first : product->output.of_rows[2 * pair + 1].zero_point;
      inputs->offsets[pair] = vcombine_s32(vdup_n_s32(first), vdup_n_s32(second));
    }
  }
}

// Adds products of all inputs, and returns the address behind the weights.
static XNN_INLINE const uint8_t* multiply_all(
    enum kind kind, size_t rows, pair_sums* sums, const struct input* input, struct inputs* inputs,
    const uint8_t* weights)
{
  if (inputs->is_complete) {
    return multiply(kind, rows, sums, &inputs->buffer, inputs->steps, weights);
  }
  if (kind != UNSIGNED) {
    return multiply_directly(rows, sums, input, weights);
  }
  struct cursor cursor = {0};
  while (cursor.position < input->positions) {
    const size_t steps = fill(rows, input, &cursor, /*flip=*/0, &inputs->buffer);
    weights = multiply(kind, rows, sums, &inputs->buffer, steps, weights);
  }
  return weights;
}

static XNN_INLINE int32x4_t start_of_pair(enum kind kind, int32x4_t start, int32x4_t offsets) {
  return kind == UNSIGNED ? vaddq_s32(start, offsets) : kind == DYNAMIC_ROWS ? vmulq_s32(start, offsets) : start;
}

// Computes the first `channels` channels of a tile, and returns the end of its weights.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, size_t rows, size_t mr, size_t channels, const struct product* product, struct inputs* inputs,
    const uint8_t* weights)
{
  int32x4_t start[VECTORS];
  load_start(kind, product, weights, start);
  weights += CHANNELS * sizeof(int32_t);
  pair_sums sums[MAX_PAIRS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const int64x2_t pairs = vreinterpretq_s64_s32(start[v]);
    const int32x4_t low = vreinterpretq_s32_s64(vdupq_laneq_s64(pairs, 0));
    const int32x4_t high = vreinterpretq_s32_s64(vdupq_laneq_s64(pairs, 1));
    UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
      vst1q_s32(sums[pair][2 * v], start_of_pair(kind, low, inputs->offsets[pair]));
      vst1q_s32(sums[pair][2 * v + 1], start_of_pair(kind, high, inputs->offsets[pair]));
    }
  }
  weights = multiply_all(kind, rows, sums, &product->input, inputs, weights);
  struct scales scales;
  weights = load_scales(kind, weights, &scales);
  UNROLL for (size_t pair = 0; pair < pairs_of(rows); pair++) {
    int32x4_t first[VECTORS];
    int32x4_t second[VECTORS];
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      const int64x2_t low = vreinterpretq_s64_s32(vld1q_s32(sums[pair][2 * v]));
      const int64x2_t high = vreinterpretq_s64_s32(vld1q_s32(sums[pair][2 * v + 1]));
      first[v] = vreinterpretq_s32_s64(vzip1q_s64(low, high));
      second[v] = vreinterpretq_s32_s64(vzip2q_s64(low, high));
    }
    if (2 * pair < mr) {
      store_row(kind, &product->output, 2 * pair, first, &scales, channels);
    }
    if (2 * pair + 1 < mr) {
      store_row(kind, &product->output, 2 * pair + 1, second, &scales, channels);
    }
  }
  return weights;
}

static XNN_INLINE void multiply_rows(
    enum kind kind, size_t rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  struct inputs inputs;
  prepare(kind, rows, nc, &product, &inputs);
  FOR_EACH_TILE(weights = tile(kind, rows, mr, nc, &product, &inputs, weights))
}

static XNN_INLINE void multiply_tiles(
    enum kind kind, size_t tile_rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  if (tile_rows == 1 || mr == 1) {
    multiply_rows(kind, 1, mr, nc, product, weights, tile_stride);
  } else if (mr <= 2) {
    multiply_rows(kind, 2, mr, nc, product, weights, tile_stride);
  } else if (mr <= 4) {
    multiply_rows(kind, 4, mr, nc, product, weights, tile_stride);
  } else {
    multiply_rows(kind, 6, mr, nc, product, weights, tile_stride);
  }
}

#include "ukernels/gemm_q8_neon_define.h"

DEFINE_SIGNED(1, 1x16c8__neoni8mm)
DEFINE_SIGNED(6, 6x16c8__neoni8mm)
DEFINE_UNSIGNED(1, qu8, 1x16c8__neoni8mm)
DEFINE_UNSIGNED(6, qu8, 6x16c8__neoni8mm)
DEFINE_DYNAMIC(1, 1x16c8__neoni8mm)
DEFINE_DYNAMIC(6, 6x16c8__neoni8mm)
DEFINE_DYNAMIC_ROWS(1, 1x16c8__neoni8mm)
DEFINE_DYNAMIC_ROWS(6, 6x16c8__neoni8mm)
