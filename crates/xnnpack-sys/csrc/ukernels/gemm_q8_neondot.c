// Matrix products of 8-bit integers for NEON with dot products, see `gemm_q8_neon.h`. The contribution of the weights' zero point is the
// sum of a row's inputs times the zero point, which all channels share.

#include "ukernels/gemm_q8_neon.h"
#include "ukernels/sme.h"

#define DEPTH (1 << Q8_NEONDOT_LOG2_DEPTH)

// Computes the contributions of the weights' zero point.
static XNN_INLINE XNN_OOB_READS void find_offsets(
    enum kind kind, size_t rows, const struct product* product, int32_t offsets[ROWS])
{
  if (kind != UNSIGNED) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      offsets[row] = 0;
    }
    return;
  }
  uint32x4_t sums[ROWS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    sums[row] = vdupq_n_u32(0);
  }
  const uint8x16_t ones = vdupq_n_u8(1);
  const struct input* input = &product->input;
  const uint8x16_t rest = vandq_u8(first_bytes(input->depth % STEP), ones);
  for (size_t position = 0; position < input->positions; position++) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      const uint8_t* from = row_at(input, position * input->rows_of_position + row);
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

#include "ukernels/gemm_q8_neon_tiles.h"

DEFINE_UNSIGNED(1, qu8, 1x16c4__neondot)
DEFINE_UNSIGNED(4, qu8, 4x16c4__neondot)
DEFINE_DYNAMIC(1, 1x16c4__neondot)
DEFINE_DYNAMIC(4, 4x16c4__neondot)
DEFINE_SIGNED(1, 1x16c4__neondot)
DEFINE_DYNAMIC_ROWS(1, 1x16c4__neondot)

// Rows one by one, whose addresses are as far apart as for SME (`gemm_q8_sme.c`).

QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_rows_x16c4__sme) {
  for (; mr != 0; mr--) {
    xnnpack_sys_qs8_gemm_minmax_ukernel_1x16c4__neondot(1, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params);
    a += a_stride;
    c += cm_stride;
  }
}

QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_rows_x16c4__sme) {
  for (; mr != 0; mr--) {
    xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_1x16c4__neondot(
        1, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params, quantization_params);
    a += a_stride;
    c = (float*) ((uintptr_t) c + cm_stride);
    quantization_params++;
  }
}

#define EACH_ROW(kind, zero_bytes, ...) \
  const size_t tile_rows = sme_side_of(xnnpack_sys_sme_bytes()); \
  for (size_t row = 0; row < mr; row++) { \
    const struct product product = { \
        .input = \
            {.rows = (const uint8_t* const*) a + row, .rows_of_position = tile_rows, \
             .positions = ks / (tile_rows * sizeof(void*)), .depth = kc, .offset = a_offset, \
             .zero = (const uint8_t*) zero, .padding = (const uint8_t*) (zero_bytes)}, \
        __VA_ARGS__}; \
    multiply_tiles(kind, 1, 1, nc, product, w, cn_stride); \
  }

QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_rows_x16c4__sme) {
  EACH_ROW(
      SIGNED, zero,
      .output = {.at = (uint8_t*) c + row * cm_stride, .row_stride = cm_stride, .int8 = int8_output(params)})
}

QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_rows_x16c4__sme) {
  EACH_ROW(
      DYNAMIC, zero_data, .zero_point = quantization_params->zero_point,
      .output = {
          .at = (uint8_t*) c + row * cm_stride, .row_stride = cm_stride,
          .scale = vdupq_n_f32(quantization_params->inv_scale), .min = vdupq_n_f32(params->scalar.min),
          .max = vdupq_n_f32(params->scalar.max)})
}
