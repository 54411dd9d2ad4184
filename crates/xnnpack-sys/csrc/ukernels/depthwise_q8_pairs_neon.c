// Depthwise convolutions of int8, and of int8 quantized at run time, for NEON without dot products, see `depthwise_q8_neon_rows.h`.
//
// Two products are added in 16 bits, which overflows for two products of -128 and -128: these microkernels are for weights from -127 on
// (`config/q8_exact_config.c`).

#include <arm_neon.h>

#include "ukernels/depthwise_q8_neon.h"

// Bytes of a block of channels.
struct group {
  int8x16_t of[GROUP];
};

static XNN_INLINE struct group group_of(size_t rows, const uint8x16_t from[GROUP]) {
  struct group group;
  UNROLL for (size_t row = 0; row < rows; row++) {
    group.of[row] = vreinterpretq_s8_u8(from[row]);
  }
  return group;
}

// Adds products of one or two inputs of each channel.
static XNN_INLINE void add_pair(
    size_t count, int32x4_t sums[VECTORS], const int8x16_t inputs[2], const int8x16_t weights[2])
{
  int16x8_t low = vmull_s8(vget_low_s8(inputs[0]), vget_low_s8(weights[0]));
  int16x8_t high = vmull_high_s8(inputs[0], weights[0]);
  if (count == 2) {
    low = vmlal_s8(low, vget_low_s8(inputs[1]), vget_low_s8(weights[1]));
    high = vmlal_high_s8(high, inputs[1], weights[1]);
  }
  sums[0] = vaddw_s16(sums[0], vget_low_s16(low));
  sums[1] = vaddw_high_s16(sums[1], low);
  sums[2] = vaddw_s16(sums[2], vget_low_s16(high));
  sums[3] = vaddw_high_s16(sums[3], high);
}

static XNN_INLINE void add_products(
    size_t rows, int32x4_t sums[VECTORS], const struct group* inputs, const struct group* weights)
{
  UNROLL for (size_t row = 0; row < rows; row += 2) {
    add_pair(row + 1 < rows ? 2 : 1, sums, &inputs->of[row], &weights->of[row]);
  }
}

static XNN_INLINE void add_columns(
    int32x4_t sums[VECTORS], const struct group* first, const struct group* second, const struct group* third,
    const struct group weights[COLUMN])
{
  add_products(2, sums, first, &weights[0]);
  add_products(2, sums, second, &weights[1]);
  add_products(COLUMN, sums, third, &weights[2]);
  const int8x16_t inputs[2] = {first->of[2], second->of[2]};
  const int8x16_t of_inputs[2] = {weights[0].of[2], weights[1].of[2]};
  add_pair(2, sums, inputs, of_inputs);
}

#include "ukernels/depthwise_q8_neon_rows.h"

DEFINE_SIGNED(9, neon)
DEFINE_SIGNED(25, neon)
DEFINE_DYNAMIC(9, neon)
DEFINE_DYNAMIC(25, neon)
