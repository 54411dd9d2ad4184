// Matrix products of uint8 for NEON without dot products, with weights as XNNPACK packs them: transposed convolutions. Operands become
// 16-bit integers, and weights lose their zero point. See `gemm_q8_neon.h`.

#include "ukernels/gemm_q8_neon.h"

#define DEPTH 1

// Inputs that are loaded at a time.
#define EIGHT 8

static XNN_INLINE void find_offsets(enum kind kind, size_t rows, const struct product* product, int32_t offsets[ROWS]) {
  UNROLL for (size_t row = 0; row < rows; row++) {
    offsets[row] = 0;
  }
}

// Eight bytes as 16-bit integers.
static XNN_INLINE int16x8_t widened(const uint8_t* from) { return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from))); }

// Adds products of an input of each row, from a lane of `inputs`.
#define MULTIPLY_ONE(lane) \
  { \
    const uint8x16_t bytes = vld1q_u8(weights); \
    const int16x8_t front = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(bytes), vget_low_u8(zero))); \
    const int16x8_t back = vreinterpretq_s16_u16(vsubl_high_u8(bytes, zero)); \
    UNROLL for (size_t row = 0; row < rows; row++) { \
      sums[row][0] = vmlal_laneq_s16(sums[row][0], vget_low_s16(front), inputs[row], lane); \
      sums[row][1] = vmlal_high_laneq_s16(sums[row][1], front, inputs[row], lane); \
      sums[row][2] = vmlal_laneq_s16(sums[row][2], vget_low_s16(back), inputs[row], lane); \
      sums[row][3] = vmlal_high_laneq_s16(sums[row][3], back, inputs[row], lane); \
    } \
    weights += CHANNELS; \
  }

#define MULTIPLY_ONE_OF(some, lane) \
  if ((some) > (lane)) \
  MULTIPLY_ONE(lane)

// Adds products of the inputs at a position, and returns the address behind the weights.
static XNN_INLINE XNN_OOB_READS const uint8_t* multiply(
    enum kind kind, size_t rows, int32x4_t sums[ROWS][VECTORS], const uint8_t* from[ROWS], size_t count,
    const uint8_t* weights, int32_t zero_point)
{
  const uint8x16_t zero = vdupq_n_u8((uint8_t) zero_point);
  int16x8_t inputs[ROWS];
  for (; count >= EIGHT; count -= EIGHT) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      inputs[row] = widened(from[row]);
      from[row] += EIGHT;
    }
    MULTIPLY_ONE(0);
    MULTIPLY_ONE(1);
    MULTIPLY_ONE(2);
    MULTIPLY_ONE(3);
    MULTIPLY_ONE(4);
    MULTIPLY_ONE(5);
    MULTIPLY_ONE(6);
    MULTIPLY_ONE(7);
  }
  if (count == 0) {
    return weights;
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    inputs[row] = widened(from[row]);
  }
  MULTIPLY_ONE(0);
  MULTIPLY_ONE_OF(count, 1);
  MULTIPLY_ONE_OF(count, 2);
  MULTIPLY_ONE_OF(count, 3);
  MULTIPLY_ONE_OF(count, 4);
  MULTIPLY_ONE_OF(count, 5);
  MULTIPLY_ONE_OF(count, 6);
  return weights;
}

#include "ukernels/gemm_q8_neon_tiles.h"

DEFINE_UNSIGNED(1, plain_qu8, 1x16__neon)
DEFINE_UNSIGNED(4, plain_qu8, 4x16__neon)
