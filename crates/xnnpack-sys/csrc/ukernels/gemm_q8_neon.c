// Matrix products of 8-bit integers for NEON without dot products, see `gemm_q8_neon.h`.
//
// Two products of int8 are added in 16 bits. If both are of -128 and -128 their sum does not fit, but their difference does: the second
// is subtracted, with the complement of its weight, which is one less than the opposite. That adds the input once too often.
//
// For uint8, 128 is taken off inputs and weights. `prepare_qu8` of `config/q8_neon_config.c` adds the products of weights and that 128 to
// the biases.

#include "ukernels/gemm_q8_neon.h"

#define OFFSET 128
#define DEPTH (1 << Q8_NEON_LOG2_DEPTH)

// Inputs of a row as int8.
static XNN_INLINE int8x16_t load_inputs(enum kind kind, const uint8_t* from) {
  uint8x16_t bytes = vld1q_u8(from);
  if (kind == UNSIGNED) {
    bytes = veorq_u8(bytes, vdupq_n_u8(OFFSET));
  } else {
    // GCC would load pairs of inputs one by one.
    __asm__("" : "+w"(bytes));
  }
  return vreinterpretq_s8_u8(bytes);
}

// The inputs that exist; others are 0. Bytes behind a row may change between two loads.
static XNN_INLINE int8x16_t load_rest(enum kind kind, const uint8_t* from, uint8x16_t rest) {
  return vandq_s8(load_inputs(kind, from), vreinterpretq_s8_u8(rest));
}

// Adds inputs, and those in the second pairs of four, whose products are subtracted.
static XNN_INLINE void add_inputs(int8x16_t inputs, int32x4_t* all, int32x4_t* second) {
  const int16x8_t pairs = vpaddlq_s8(inputs);
  *all = vpadalq_s16(*all, pairs);
  *second = vsraq_n_s32(*second, vreinterpretq_s32_s16(pairs), 16);
}

// Computes the contributions of the weights' zero point and of complements.
static XNN_INLINE XNN_OOB_READS void find_offsets(
    enum kind kind, size_t rows, const struct product* product, int32_t offsets[ROWS])
{
  const struct input* input = &product->input;
  const uint8x16_t rest = first_bytes(input->depth % STEP);
  int32x4_t all[ROWS];
  int32x4_t second[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    all[row] = vdupq_n_s32(0);
    second[row] = vdupq_n_s32(0);
  }
  for (size_t position = 0; position < input->positions; position++) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      const uint8_t* from = row_at(input, position * rows + row);
      size_t count = input->depth;
      for (; count >= STEP; count -= STEP) {
        add_inputs(load_inputs(kind, from), &all[row], &second[row]);
        from += STEP;
      }
      if (count != 0) {
        add_inputs(load_rest(kind, from, rest), &all[row], &second[row]);
      }
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    offsets[row] = -vaddvq_s32(second[row]);
    if (kind == UNSIGNED) {
      offsets[row] += vaddvq_s32(all[row]) * (OFFSET - product->zero_point);
    }
  }
}

// The pair of inputs from a lane.
#define PAIR(row, lane) vreinterpretq_s8_s16(vdupq_laneq_s16(vreinterpretq_s16_s8(inputs[row]), lane))

// Weights of a pair of inputs, or their complements.
#define LOAD_PAIR(to, from, flip) \
  int8x16_t to[2]; \
  UNROLL for (size_t half = 0; half < 2; half++) { \
    to[half] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8((from) + half * sizeof(uint8x16_t)), vdupq_n_u8(flip))); \
  }

// Has the compiler finish a row before it begins another one, which would need more registers than there are.
#define ROW_IS_DONE(row) \
  __asm__("" \
          : "+w"(sums[row][0]), "+w"(sums[row][1]), "+w"(sums[row][2]), "+w"(sums[row][3]), \
            "+w"(inputs[((row) + 1) % rows]))

// Adds products of two inputs of each row, from a lane of 16 bits.
#define MULTIPLY_TWO(lane) \
  { \
    LOAD_PAIR(first, weights, kind == UNSIGNED ? OFFSET : 0); \
    UNROLL for (size_t row = 0; row < rows; row++) { \
      const int8x16_t a = PAIR(row, lane); \
      UNROLL for (size_t half = 0; half < 2; half++) { \
        sums[row][2 * half] = \
            vpadalq_s16(sums[row][2 * half], vmull_s8(vget_low_s8(a), vget_low_s8(first[half]))); \
        sums[row][2 * half + 1] = vpadalq_s16(sums[row][2 * half + 1], vmull_high_s8(a, first[half])); \
      } \
    } \
    weights += 2 * CHANNELS; \
  }

// Adds products of four inputs of each row, from a lane and the next.
#define MULTIPLY_FOUR(lane) \
  { \
    LOAD_PAIR(first, weights, kind == UNSIGNED ? OFFSET : 0); \
    LOAD_PAIR(second, weights + 2 * CHANNELS, kind == UNSIGNED ? 0xFF - OFFSET : 0xFF); \
    UNROLL for (size_t row = 0; row < rows; row++) { \
      const int8x16_t a = PAIR(row, lane); \
      const int8x16_t b = PAIR(row, (lane) + 1); \
      UNROLL for (size_t half = 0; half < 2; half++) { \
        int16x8_t front = vmull_s8(vget_low_s8(a), vget_low_s8(first[half])); \
        int16x8_t back = vmull_high_s8(a, first[half]); \
        front = vmlsl_s8(front, vget_low_s8(b), vget_low_s8(second[half])); \
        back = vmlsl_high_s8(back, b, second[half]); \
        sums[row][2 * half] = vpadalq_s16(sums[row][2 * half], front); \
        sums[row][2 * half + 1] = vpadalq_s16(sums[row][2 * half + 1], back); \
      } \
      ROW_IS_DONE(row); \
    } \
    weights += 4 * CHANNELS; \
  }

// Adds products of up to four of `count` inputs that are left. Weights are packed for whole pairs.
#define MULTIPLY_REST(lane) \
  if (count > 2 * (lane) + 2) \
    MULTIPLY_FOUR(lane) \
  else if (count > 2 * (lane)) \
    MULTIPLY_TWO(lane)

// Adds products of the inputs at a position, and returns the address behind the weights.
static XNN_INLINE XNN_OOB_READS const uint8_t* multiply(
    enum kind kind, size_t rows, int32x4_t sums[ROWS][VECTORS], const uint8_t* from[ROWS], size_t count,
    const uint8_t* weights, int32_t zero_point)
{
  int8x16_t inputs[ROWS];
  for (; count >= STEP; count -= STEP) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      inputs[row] = load_inputs(kind, from[row]);
      from[row] += STEP;
    }
    MULTIPLY_FOUR(0);
    MULTIPLY_FOUR(2);
    MULTIPLY_FOUR(4);
    MULTIPLY_FOUR(6);
  }
  if (count == 0) {
    return weights;
  }
  const uint8x16_t rest = first_bytes(count);
  UNROLL for (size_t row = 0; row < rows; row++) {
    inputs[row] = load_rest(kind, from[row], rest);
  }
  MULTIPLY_REST(0)
  MULTIPLY_REST(2)
  MULTIPLY_REST(4)
  MULTIPLY_REST(6)
  return weights;
}

#include "ukernels/gemm_q8_neon_tiles.h"

DEFINE_UNSIGNED(1, qu8, 1x16c2__neon)
DEFINE_UNSIGNED(4, qu8, 4x16c2__neon)
DEFINE_DYNAMIC(1, 1x16c2__neon)
DEFINE_DYNAMIC(4, 4x16c2__neon)
DEFINE_DYNAMIC_ROWS(1, 1x16c2__neon)
DEFINE_DYNAMIC_ROWS(4, 4x16c2__neon)
