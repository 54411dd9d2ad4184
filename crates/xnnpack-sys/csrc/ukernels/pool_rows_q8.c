// Maximum of a row of 8-bit integers. Rows are pooled as images of one channel, for which other microkernels use one lane of many.
// Here vectors have neighbouring elements of a row.

#include "ukernels/pool_rows_q8.h"

#include <assert.h>
#include <string.h>

#include "config/operators.h"
#include "ukernels/pool_rows.h"
#include "xnnpack/math.h"

// Compilers make a vector of a block.
enum { BLOCK = 16 };

static XNN_INLINE uint8_t larger(uint8_t a, uint8_t b) { return a > b ? a : b; }

// Flipped bits order signed integers as unsigned ones, which every instruction set compares at once.
enum { UNSIGNED = 0, SIGNED = 0x80 };

static XNN_INLINE uint8_t largest(const uint8_t* row, size_t length, uint8_t flipped) {
  uint8_t most[BLOCK] = {0};
  for (; length >= BLOCK; length -= BLOCK) {
    uint8_t next[BLOCK];
    memcpy(next, row, BLOCK);
    for (size_t i = 0; i < BLOCK; i++) {
      next[i] ^= flipped;
    }
    for (size_t i = 0; i < BLOCK; i++) {
      most[i] = larger(most[i], next[i]);
    }
    row += BLOCK;
  }
  for (size_t i = 0; i < length; i++) {
    most[i] = larger(most[i], row[i] ^ flipped);
  }
  for (size_t i = 0; i < BLOCK / 2; i++) {
    most[i] = larger(most[i], most[i + BLOCK / 2]);
  }
  for (size_t i = 1; i < BLOCK / 2; i++) {
    most[0] = larger(most[0], most[i]);
  }
  return most[0] ^ flipped;
}

#define POOL(type, element, flipped) \
  assert(output_pixels != 0 && kernel_elements != 0 && channels != 0); \
  if (output_pixels == 1 && is_row((const void**) input, kernel_elements, channels, 1)) { \
    const uint8_t* row = (const uint8_t*) ((uintptr_t) input[0] + input_offset); \
    const element most = (element) largest(row, kernel_elements, flipped); \
    *output = (element) math_min_s32(math_max_s32(most, params->scalar.min), params->scalar.max); \
    return; \
  } \
  xnnpack_sys_##type##_windows_config()->ukernel( \
      output_pixels, kernel_elements, channels, (const void**) input, input_offset, output, input_increment, \
      output_increment, params)

S8_MAXPOOL(xnnpack_sys_s8_maxpool_minmax_ukernel__rows) {
  POOL(s8, int8_t, SIGNED);
}

U8_MAXPOOL(xnnpack_sys_u8_maxpool_minmax_ukernel__rows) {
  POOL(u8, uint8_t, UNSIGNED);
}
