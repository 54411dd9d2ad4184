// Matrix products and convolutions of uint8, and convolutions of images quantized at run time, with NEON: included by a file for each
// instruction set, which defines `DOT` and `SUFFIX`. XNNPACK's microkernels round sums of uint8 once, and fuse the last multiplication
// of images with the addition of the bias; TFLite's reference kernels do neither.
//
// Without dot products, operands become 16-bit integers, and weights lose their zero point. With dot products, its contribution is the
// sum of a row's inputs times the zero point, which all channels share.
//
// `kind` and `rows` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become
// registers.

#include <arm_neon.h>

#include "ukernels/fixed_point_neon.h"
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

struct input {
  // Rows of the first position, then of the next. Rows behind the last of `mr` repeat it.
  const uint8_t* const* rows;
  size_t positions;
  // Bytes of a row at a position.
  size_t depth;
  // Added to addresses other than `zero`, which is replaced by `padding`.
  size_t offset;
  const uint8_t* zero;
  const uint8_t* padding;
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

static XNN_INLINE const uint8_t* row_at(const struct input* input, size_t i) {
  const uint8_t* at = input->rows[i];
  return at == input->zero ? input->padding : at + input->offset;
}

#if DOT

// Inputs that a vector has.
#define STEP 16

// All bits of the first `count` bytes.
static XNN_INLINE uint8x16_t first_bytes(size_t count) {
  static const uint8_t places[STEP] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return vcltq_u8(vld1q_u8(places), vdupq_n_u8((uint8_t) count));
}

// Computes the contributions of the weights' zero point.
static XNN_INLINE void find_offsets(size_t rows, const struct product* product, int32_t offsets[ROWS]) {
  uint32x4_t sums[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    sums[row] = vdupq_n_u32(0);
  }
  const uint8x16_t ones = vdupq_n_u8(1);
  const struct input* input = &product->input;
  const uint8x16_t rest = vandq_u8(first_bytes(input->depth % STEP), ones);
  for (size_t position = 0; position < input->positions; position++) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      const uint8_t* from = row_at(input, position * rows + row);
      size_t count = input->depth;
      for (; count >= STEP; count -= STEP) {
        sums[row] = vdotq_u32(sums[row], vld1q_u8(from), ones);
        from += STEP;
      }
      if (count != 0) {
        sums[row] = vdotq_u32(sums[row], vld1q_u8(from), rest);
      }
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    offsets[row] = -(int32_t) (vaddvq_u32(sums[row]) * (uint32_t) product->zero_point);
  }
}

// Adds products of four inputs of each row, from a lane of `inputs`, with weights of four channels.
#define ADD_PRODUCTS(sums, weights, inputs, lane) \
  (kind == UNSIGNED \
       ? vreinterpretq_s32_u32(vdotq_laneq_u32(vreinterpretq_u32_s32(sums), weights, inputs, lane)) \
       : vdotq_laneq_s32(sums, vreinterpretq_s8_u8(weights), vreinterpretq_s8_u8(inputs), lane))

#define MULTIPLY_FOUR(lane) \
  UNROLL for (size_t v = 0; v < VECTORS; v++) { \
    const uint8x16_t of_channels = vld1q_u8(weights + v * sizeof(uint8x16_t)); \
    UNROLL for (size_t row = 0; row < rows; row++) { \
      sums[row][v] = ADD_PRODUCTS(sums[row][v], of_channels, inputs[row], lane); \
    } \
  } \
  weights += 4 * CHANNELS

// Adds products of the inputs at a position, and returns the address behind the weights. Bytes behind a row are not multiplied: they
// may change between this and `find_offsets`.
static XNN_INLINE XNN_OOB_READS const uint8_t* multiply(
    enum kind kind, size_t rows, int32x4_t sums[ROWS][VECTORS], const uint8_t* from[ROWS], size_t count,
    const uint8_t* weights, int32_t zero_point)
{
  uint8x16_t inputs[ROWS];
  for (; count >= STEP; count -= STEP) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      inputs[row] = vld1q_u8(from[row]);
      from[row] += STEP;
    }
    MULTIPLY_FOUR(0);
    MULTIPLY_FOUR(1);
    MULTIPLY_FOUR(2);
    MULTIPLY_FOUR(3);
  }
  if (count == 0) {
    return weights;
  }
  const uint8x16_t rest = first_bytes(count);
  UNROLL for (size_t row = 0; row < rows; row++) {
    inputs[row] = vandq_u8(vld1q_u8(from[row]), rest);
  }
  MULTIPLY_FOUR(0);
  if (count > 4) {
    MULTIPLY_FOUR(1);
  }
  if (count > 8) {
    MULTIPLY_FOUR(2);
  }
  if (count > 12) {
    MULTIPLY_FOUR(3);
  }
  return weights;
}

#else

// Inputs that a vector has.
#define STEP 8

static XNN_INLINE void find_offsets(size_t rows, const struct product* product, int32_t offsets[ROWS]) {
  UNROLL for (size_t row = 0; row < rows; row++) {
    offsets[row] = 0;
  }
}

// Eight bytes as 16-bit integers.
static XNN_INLINE int16x8_t widened(enum kind kind, const uint8_t* from) {
  const uint8x8_t bytes = vld1_u8(from);
  return kind == UNSIGNED ? vreinterpretq_s16_u16(vmovl_u8(bytes)) : vmovl_s8(vreinterpret_s8_u8(bytes));
}

// Adds products of an input of each row, from a lane of `inputs`.
#define MULTIPLY_ONE(lane) \
  { \
    const uint8x16_t bytes = vld1q_u8(weights); \
    int16x8_t front, back; \
    if (kind == UNSIGNED) { \
      front = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(bytes), zero)); \
      back = vreinterpretq_s16_u16(vsubl_high_u8(bytes, zeros)); \
    } else { \
      front = vmovl_s8(vget_low_s8(vreinterpretq_s8_u8(bytes))); \
      back = vmovl_high_s8(vreinterpretq_s8_u8(bytes)); \
    } \
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
  const uint8x16_t zeros = vdupq_n_u8((uint8_t) zero_point);
  const uint8x8_t zero = vget_low_u8(zeros);
  int16x8_t inputs[ROWS];
  for (; count >= STEP; count -= STEP) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      inputs[row] = widened(kind, from[row]);
      from[row] += STEP;
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
    inputs[row] = widened(kind, from[row]);
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

#endif

// Scales sums in the order of TFLite's reference kernels, on which the last bits depend.
static XNN_INLINE void store_scaled(
    const struct output* output, uint8_t* to, const int32x4_t sums[VECTORS], const float* scales, size_t channels)
{
  float32x4_t values[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const float32x4_t product = vmulq_f32(vmulq_f32(vcvtq_f32_s32(sums[v]), vld1q_f32(scales + v * 4)), output->scale);
    const float32x4_t sum = vaddq_f32(product, vld1q_f32(scales + CHANNELS + v * 4));
    values[v] = vminq_f32(vmaxq_f32(sum, output->min), output->max);
  }
  store_floats((float*) to, values, channels);
}

// Computes the first `channels` channels of a tile, and returns the end of its weights.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, size_t rows, size_t mr, size_t channels, const struct product* product,
    const int32_t offsets[ROWS], const uint8_t* weights)
{
  int32x4_t start[VECTORS];
  load_block(weights, start);
  weights += CHANNELS * sizeof(int32_t);
  int32x4_t sums[ROWS][VECTORS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[row][v] = kind == UNSIGNED ? vaddq_s32(start[v], vdupq_n_s32(offsets[row]))
                                      : vmulq_n_s32(start[v], product->zero_point);
    }
  }
  const struct input* input = &product->input;
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * rows + row);
    }
    weights = multiply(kind, rows, sums, from, input->depth, weights, product->zero_point);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (row < mr) {
      uint8_t* to = product->output.at + row * product->output.row_stride;
      if (kind == UNSIGNED) {
        store_bytes(to, requantize(&product->output.requantization, sums[row]), channels);
      } else {
        store_scaled(&product->output, to, sums[row], (const float*) weights, channels);
      }
    }
  }
  return kind == UNSIGNED ? weights : weights + 2 * CHANNELS * sizeof(float);
}

static XNN_INLINE void multiply_tiles(
    enum kind kind, size_t rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  int32_t offsets[ROWS];
  if (kind == UNSIGNED) {
    find_offsets(rows, &product, offsets);
  }
  for (;;) {
    weights = tile(kind, rows, mr, nc, &product, offsets, weights);
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    product.output.at += tile_stride;
  }
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define UNSIGNED_OUTPUT \
  {.at = c, .row_stride = cm_stride, .requantization = requantization(params)}

#define DEFINE(tile_rows) \
  QU8_GEMM(JOIN(xnnpack_sys_qu8_gemm_minmax_ukernel_, SUFFIX(tile_rows))) { \
    ASSERT_GEMM(tile_rows, 1); \
    const uint8_t* rows[tile_rows]; \
    for (size_t row = 0; row < (tile_rows); row++) { \
      rows[row] = a + min(row, mr - 1) * a_stride; \
    } \
    const struct product product = { \
        .input = {.rows = rows, .positions = 1, .depth = kc}, \
        .zero_point = params->rndnu_scalar.kernel_zero_point, \
        .output = UNSIGNED_OUTPUT}; \
    multiply_tiles(UNSIGNED, tile_rows, mr, nc, product, w, cn_stride); \
  } \
  QU8_IGEMM(JOIN(xnnpack_sys_qu8_igemm_minmax_ukernel_, SUFFIX(tile_rows))) { \
    ASSERT_IGEMM(tile_rows, 1); \
    const struct product product = { \
        .input = \
            {.rows = a, .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, .offset = a_offset, \
             .zero = zero, .padding = zero}, \
        .zero_point = params->rndnu_scalar.kernel_zero_point, \
        .output = UNSIGNED_OUTPUT}; \
    multiply_tiles(UNSIGNED, tile_rows, mr, nc, product, w, cn_stride); \
  } \
  QC8W_IGEMM(JOIN(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_, SUFFIX(tile_rows))) { \
    ASSERT_IGEMM(tile_rows, 1); \
    const struct product product = { \
        .input = \
            {.rows = (const uint8_t* const*) a, .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, \
             .offset = a_offset, .zero = (const uint8_t*) zero, .padding = (const uint8_t*) zero_data}, \
        .zero_point = quantization_params->zero_point, \
        .output = \
            {.at = (uint8_t*) c, .row_stride = cm_stride, .scale = vdupq_n_f32(quantization_params->inv_scale), \
             .min = vdupq_n_f32(params->scalar.min), .max = vdupq_n_f32(params->scalar.max)}}; \
    multiply_tiles(DYNAMIC, tile_rows, mr, nc, product, w, cn_stride); \
  }

DEFINE(1)
DEFINE(4)
