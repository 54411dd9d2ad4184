// Maximum of a row of 8-bit integers, where `pool_images.h` has none. Rows are pooled as images of one channel, for which XNNPACK's
// microkernels use one lane of many. Here vectors have neighbouring elements of a row.

#include "ukernels/pool_images_api.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "xnnpack/common.h"
#include "xnnpack/math.h"
#include "xnnpack/microparams.h"

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

// Loops over images of one channel.
#define POOL(element, params_type, flipped) \
  assert(images != 0 && pixels != 0 && channels == 1); \
  const struct params_type* bounds = params; \
  const uint8_t* row = input; \
  element* most = output; \
  for (; images > 0; images--) { \
    const element found = (element) largest(row, pixels, flipped); \
    *most++ = (element) math_min_s32(math_max_s32(found, bounds->scalar.min), bounds->scalar.max); \
    row += pixels; \
  }

IMAGE_MAX(xnnpack_sys_s8_image_max_ukernel__rows) {
  POOL(int8_t, xnn_s8_minmax_params, SIGNED);
}

IMAGE_MAX(xnnpack_sys_u8_image_max_ukernel__rows) {
  POOL(uint8_t, xnn_u8_minmax_params, UNSIGNED);
}
