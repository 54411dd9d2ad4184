// Matrix products and convolutions of uint8, and convolutions of images quantized at run time, with NEON. XNNPACK's microkernels round
// sums of uint8 once, and fuse the last multiplication of images with the addition of the bias; TFLite's reference kernels do neither.
//
// Files for each instruction set include this, define how inputs are multiplied (`find_offsets`, `multiply`), and include
// `gemm_q8_neon_tiles.h`.
//
// `kind` and `rows` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become
// registers.

#ifndef XNNPACK_SYS_GEMM_Q8_NEON_H
#define XNNPACK_SYS_GEMM_Q8_NEON_H

#include <arm_neon.h>

#include "ukernels/fixed_point_neon.h"
#include "ukernels/input_rows.h"
#include "ukernels/microkernel.h"
#include "ukernels/q8_neon.h"
#include "xnnpack/math.h"

#define ROWS Q8_NEON_ROWS
#define CHANNELS Q8_NEON_CHANNELS
#define VECTORS Q8_NEON_VECTORS

enum kind {
  // uint8 with one zero point and one scale for all weights.
  UNSIGNED,
  // int8 quantized at run time, with a scale for each channel; sums become floats.
  DYNAMIC,
};

struct output {
  uint8_t* at;
  size_t row_stride;
  // UNSIGNED.
  struct requantization requantization;
  // DYNAMIC: the image's scale, and bounds.
  float32x4_t scale;
  float32x4_t min;
  float32x4_t max;
};

// State that the tiles of a product share.
struct product {
  struct input input;
  // The zero point of the weights for UNSIGNED, and of the image for DYNAMIC.
  int32_t zero_point;
  struct output output;
};

// Inputs that a vector has.
#define STEP 16

// Sets all bits of the first `count` bytes.
static XNN_INLINE uint8x16_t first_bytes(size_t count) {
  static const uint8_t places[STEP] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return vcltq_u8(vld1q_u8(places), vdupq_n_u8((uint8_t) count));
}

#endif
