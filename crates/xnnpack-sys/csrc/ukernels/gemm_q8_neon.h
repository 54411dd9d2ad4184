// Matrix products and convolutions of uint8, and convolutions of images quantized at run time, with NEON. XNNPACK's microkernels round
// sums of uint8 once, and fuse the last multiplication of images with the addition of the bias; TFLite's reference kernels do neither.
//
// Files for each instruction set include this, define how inputs are multiplied (`find_offsets`, `multiply`), and include
// `gemm_q8_neon_tiles.h`. That for matrix products (i8mm) has tiles of its own.
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
#include "ukernels/requantize_qs8_neon.h"
#include "xnnpack/math.h"

#define ROWS Q8_NEON_ROWS
#define CHANNELS Q8_NEON_CHANNELS
#define VECTORS Q8_NEON_VECTORS

enum kind {
  // uint8 with one zero point and one scale for all weights.
  UNSIGNED,
  // int8 with a scale for each channel.
  SIGNED,
  // int8 images quantized at run time, with a scale for each channel; sums become floats.
  DYNAMIC,
  // int8 rows quantized at run time: as DYNAMIC, with a zero point and a scale for each row.
  DYNAMIC_ROWS,
};

struct output {
  uint8_t* at;
  size_t row_stride;
  // UNSIGNED.
  struct requantization requantization;
  // SIGNED.
  struct int8_output int8;
  // DYNAMIC: the image's scale. DYNAMIC_ROWS: that of each row, and its zero point.
  float32x4_t scale;
  const struct xnn_qd8_quantization_params* of_rows;
  // Both: bounds.
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

// Scales of a tile's channels, but for UNSIGNED, and biases of floats.
struct scales {
  float32x4_t scales[VECTORS];
  float32x4_t biases[VECTORS];
};

// Loads those behind the weights of a tile, and returns their end.
static XNN_INLINE const uint8_t* load_scales(enum kind kind, const uint8_t* weights, struct scales* to) {
  if (kind != UNSIGNED) {
    load_floats((const float*) weights, to->scales);
    weights += CHANNELS * sizeof(float);
  }
  if (kind == DYNAMIC || kind == DYNAMIC_ROWS) {
    load_floats((const float*) weights, to->biases);
    weights += CHANNELS * sizeof(float);
  }
  return weights;
}

// Scales sums in the order of TFLite's reference kernels, on which the last bits depend. Rows are scaled as by XNNPACK.
static XNN_INLINE void store_scaled(
    enum kind kind, const struct output* output, size_t row, float* to, const int32x4_t sums[VECTORS],
    const struct scales* by, size_t channels)
{
  float32x4_t values[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const float32x4_t sum = vcvtq_f32_s32(sums[v]);
    const float32x4_t scaled =
        kind == DYNAMIC ? vaddq_f32(vmulq_f32(vmulq_f32(sum, by->scales[v]), output->scale), by->biases[v])
                        : vfmaq_f32(by->biases[v], vmulq_n_f32(sum, output->of_rows[row].inv_scale), by->scales[v]);
    values[v] = vminq_f32(vmaxq_f32(scaled, output->min), output->max);
  }
  store_floats(to, values, channels);
}

// Stores a row of a tile.
static XNN_INLINE void store_row(
    enum kind kind, const struct output* output, size_t row, const int32x4_t sums[VECTORS], const struct scales* by,
    size_t channels)
{
  uint8_t* const to = output->at + row * output->row_stride;
  if (kind == UNSIGNED) {
    store_bytes(to, requantize(&output->requantization, sums), channels);
  } else if (kind == SIGNED) {
    store_bytes(to, vreinterpretq_u8_s8(requantize_int8(&output->int8, sums, by->scales)), channels);
  } else {
    store_scaled(kind, output, row, (float*) to, sums, by, channels);
  }
}

// Computes tiles of the first `nc` channels one after another: the end of `multiply_tiles`, whose variables these are. With a function for
// the next tile, GCC 12 keeps more variables in memory.
#define FOR_EACH_TILE(compute) \
  for (;;) { \
    compute; \
    if (nc <= CHANNELS) { \
      return; \
    } \
    nc -= CHANNELS; \
    product.output.at += tile_stride; \
  }

// Loads the sums with which a tile begins: biases, or for DYNAMIC the sums of weights, times the zero point. For DYNAMIC_ROWS they are
// still to be multiplied (`start_of_row`).
static XNN_INLINE void load_start(
    enum kind kind, const struct product* product, const uint8_t* weights, int32x4_t start[VECTORS])
{
  load_block(weights, start);
  if (kind == DYNAMIC) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      start[v] = vmulq_n_s32(start[v], product->zero_point);
    }
  }
}

static XNN_INLINE int32x4_t start_of_row(enum kind kind, const struct product* product, size_t row, int32x4_t start) {
  return kind == DYNAMIC_ROWS ? vmulq_n_s32(start, product->output.of_rows[row].zero_point) : start;
}

// Inputs that a vector has.
#define STEP 16

// Sets all bits of the first `count` bytes.
static XNN_INLINE uint8x16_t first_bytes(size_t count) {
  static const uint8_t places[STEP] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return vcltq_u8(vld1q_u8(places), vdupq_n_u8((uint8_t) count));
}

#endif
