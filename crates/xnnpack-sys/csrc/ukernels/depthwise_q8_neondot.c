// Depthwise convolutions of int8, and of int8 quantized at run time, for NEON with dot products, see `depthwise_q8_neon_rows.h`.
//
// XNNPACK multiplies two bytes of each channel at a time. Here a table lookup brings up to four bytes of a channel together, which one
// instruction multiplies by their weights.

#include <arm_neon.h>

#include "ukernels/depthwise_q8_neon.h"

// Bytes of each channel of a block, four by four.
struct group {
  int8x16_t of[VECTORS];
};

// Looks bytes up in vectors, which are in neighbouring registers: GCC 12 copies them there for the intrinsics.
#define LOOK_UP(to, registers, at, ...) __asm__("tbl %0.16b, {" registers "}, %1.16b" : "=w"(to) : "w"(at), __VA_ARGS__)

// The bytes of each channel from one, three or four vectors. Others are 0.
static XNN_INLINE struct group group_of(size_t rows, const uint8x16_t from[GROUP]) {
  static const uint8_t places[VECTORS][16] = {
      {0, 16, 32, 48, 1, 17, 33, 49, 2, 18, 34, 50, 3, 19, 35, 51},
      {4, 20, 36, 52, 5, 21, 37, 53, 6, 22, 38, 54, 7, 23, 39, 55},
      {8, 24, 40, 56, 9, 25, 41, 57, 10, 26, 42, 58, 11, 27, 43, 59},
      {12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63},
  };
  register uint8x16_t first __asm__("v28") = from[0];
  register uint8x16_t second __asm__("v29") = from[rows > 1 ? 1 : 0];
  register uint8x16_t third __asm__("v30") = from[rows > 2 ? 2 : 0];
  register uint8x16_t fourth __asm__("v31") = from[rows > 3 ? 3 : 0];
  struct group group;
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const uint8x16_t at = vld1q_u8(places[v]);
    if (rows == 4) {
      LOOK_UP(group.of[v], "v28.16b-v31.16b", at, "w"(first), "w"(second), "w"(third), "w"(fourth));
    } else if (rows == 3) {
      LOOK_UP(group.of[v], "v28.16b-v30.16b", at, "w"(first), "w"(second), "w"(third));
    } else {
      LOOK_UP(group.of[v], "v28.16b", at, "w"(first));
    }
  }
  return group;
}

static XNN_INLINE void add_products(
    size_t rows, int32x4_t sums[VECTORS], const struct group* inputs, const struct group* weights)
{
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    sums[v] = vdotq_s32(sums[v], inputs->of[v], weights->of[v]);
  }
}

static XNN_INLINE void add_columns(
    int32x4_t sums[VECTORS], const struct group* first, const struct group* second, const struct group* third,
    const struct group weights[COLUMN])
{
  add_products(COLUMN, sums, first, &weights[0]);
  add_products(COLUMN, sums, second, &weights[1]);
  add_products(COLUMN, sums, third, &weights[2]);
}

#include "ukernels/depthwise_q8_neon_rows.h"

DEFINE_SIGNED(3, neondot)
DEFINE_SIGNED(9, neondot)
DEFINE_SIGNED(25, neondot)
DEFINE_DYNAMIC(9, neondot)
DEFINE_DYNAMIC(25, neondot)
