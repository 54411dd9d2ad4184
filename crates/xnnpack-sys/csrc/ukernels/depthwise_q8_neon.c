// Depthwise convolutions of uint8, of int8 quantized at run time with any weights, and of int8 with more than 25 weights, with NEON.
// Results of the first two are those of TFLite's reference kernels, those of the last XNNPACK's, which computes a convolution of one
// channel for each channel, with 20 times as many instructions.
//
// `kind` and `taps` are constants wherever these functions are inlined.

#include <arm_neon.h>

#include "ukernels/depthwise_q8_neon.h"
#include "ukernels/microkernel.h"

#define MAX_LARGE_TAPS 225

struct words {
  int16x8_t low;
  int16x8_t high;
};

static XNN_INLINE struct words widened(enum kind kind, uint8x16_t bytes) {
  if (kind == UNSIGNED) {
    return (struct words) {
        .low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
        .high = vreinterpretq_s16_u16(vmovl_high_u8(bytes)),
    };
  }
  const int8x16_t with_sign = vreinterpretq_s8_u8(bytes);
  return (struct words) {.low = vmovl_s8(vget_low_s8(with_sign)), .high = vmovl_high_s8(with_sign)};
}

static XNN_INLINE struct words differences(enum kind kind, uint8x16_t bytes, uint8x16_t zero_point) {
  if (kind == UNSIGNED) {
    return (struct words) {
        .low = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(bytes), vget_low_u8(zero_point))),
        .high = vreinterpretq_s16_u16(vsubl_high_u8(bytes, zero_point)),
    };
  }
  const int8x16_t with_sign = vreinterpretq_s8_u8(bytes);
  const int8x16_t zero = vreinterpretq_s8_u8(zero_point);
  return (struct words) {
      .low = vsubl_s8(vget_low_s8(with_sign), vget_low_s8(zero)), .high = vsubl_high_s8(with_sign, zero)};
}

// Adds products of int8, which fit in 16 bits.
static XNN_INLINE void multiply_signed(int8x16_t inputs, int8x16_t weights, int32x4_t sums[VECTORS]) {
  const int16x8_t low = vmull_s8(vget_low_s8(inputs), vget_low_s8(weights));
  const int16x8_t high = vmull_high_s8(inputs, weights);
  sums[0] = vaddw_s16(sums[0], vget_low_s16(low));
  sums[1] = vaddw_high_s16(sums[1], low);
  sums[2] = vaddw_s16(sums[2], vget_low_s16(high));
  sums[3] = vaddw_high_s16(sums[3], high);
}

// Adds products of inputs and weights, of which those with a zero point lose it.
static XNN_INLINE void multiply(
    enum kind kind, uint8x16_t inputs, uint8x16_t weights, uint8x16_t zero_point, int32x4_t sums[VECTORS])
{
  if (kind == SIGNED) {
    multiply_signed(vreinterpretq_s8_u8(inputs), vreinterpretq_s8_u8(weights), sums);
    return;
  }
  const struct words a = widened(kind, kind == UNSIGNED ? inputs : weights);
  const struct words b = differences(kind, kind == UNSIGNED ? weights : inputs, zero_point);
  sums[0] = vmlal_s16(sums[0], vget_low_s16(a.low), vget_low_s16(b.low));
  sums[1] = vmlal_high_s16(sums[1], a.low, b.low);
  sums[2] = vmlal_s16(sums[2], vget_low_s16(a.high), vget_low_s16(b.high));
  sums[3] = vmlal_high_s16(sums[3], a.high, b.high);
}

// Computes a block of channels of one output, and returns the end of its weights. Addresses of padding are null for DYNAMIC, whose
// zero point differs from image to image.
static XNN_INLINE XNN_OOB_READS const uint8_t* block(
    enum kind kind, size_t taps, const uint8_t* const* from, size_t first, size_t channels,
    const uint8_t* weights, const struct output* to, void* output)
{
  int32x4_t sums[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    sums[v] = vdupq_n_s32(0);
  }
  const float* const biases = (const float*) weights;
  if (kind != DYNAMIC) {
    load_block(weights, sums);
  }
  weights += LANES * sizeof(int32_t);
  const size_t unrolled = taps <= MAX_TAPS ? taps : 0;
  UNROLL for (size_t tap = 0; tap < unrolled; tap++) {
    if (kind != DYNAMIC || from[tap] != NULL) {
      multiply(kind, vld1q_u8(from[tap] + first), vld1q_u8(weights + tap * LANES), to->zero_point, sums);
    }
  }
  for (size_t tap = unrolled; tap < taps; tap++) {
    multiply(kind, vld1q_u8(from[tap] + first), vld1q_u8(weights + tap * LANES), to->zero_point, sums);
  }
  weights += taps * LANES;
  if (kind == UNSIGNED) {
    store_bytes((uint8_t*) output + first, requantize(&to->requantization, sums), channels - first);
    return weights;
  }
  if (kind == SIGNED) {
    float32x4_t of_channels[VECTORS];
    load_floats((const float*) weights, of_channels);
    const int8x16_t bytes = requantize_int8(&to->int8, sums, of_channels);
    store_bytes((uint8_t*) output + first, vreinterpretq_u8_s8(bytes), channels - first);
    return weights + LANES * sizeof(float);
  }
  float scales[LANES];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    vst1q_f32(scales + v * 4, vmulq_f32(vld1q_f32((const float*) weights + v * 4), to->scale));
  }
  store_scaled(to, (float*) output + first, sums, biases, scales, channels - first);
  return weights + LANES * sizeof(float);
}

// XNNPACK lets microkernels read up to 16 bytes behind inputs.
static XNN_INLINE void depthwise(
    enum kind kind, size_t taps, size_t channels, size_t output_width, const uint8_t* const* input,
    const uint8_t* weights, uint8_t* output, intptr_t input_stride, size_t output_increment, size_t input_offset,
    const uint8_t* zero, const struct output* to)
{
  assert(channels != 0);
  assert(output_width != 0);
  for (; output_width != 0; output_width--) {
    const uint8_t* from[MAX_LARGE_TAPS];
    for (size_t tap = 0; tap < taps; tap++) {
      const bool is_padding = input[tap] == zero;
      from[tap] = !is_padding ? input[tap] + input_offset : kind == DYNAMIC ? NULL : zero;
    }
    const uint8_t* of_block = weights;
    for (size_t first = 0; first < channels; first += LANES) {
      of_block = block(kind, taps, from, first, channels, of_block, to, output);
    }
    output += channels * (kind == DYNAMIC ? sizeof(float) : sizeof(uint8_t)) + output_increment;
    input = (const uint8_t* const*) ((uintptr_t) input + (size_t) input_stride);
  }
}

static XNN_INLINE struct output unsigned_output(const union xnn_qu8_conv_minmax_params* params) {
  return (struct output) {
      .zero_point = vdupq_n_u8((uint8_t) params->rndnu_scalar.kernel_zero_point), .requantization = requantization(params)};
}

#define DEFINE(taps) \
  QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p16c__neon) { \
    const struct output to = unsigned_output(params); \
    depthwise( \
        UNSIGNED, taps, channels, output_width, input, weights, output, input_stride, output_increment, input_offset, \
        zero, &to); \
  } \
  QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_##taps##p16c__exact_neon) { \
    const struct output to = dynamic_output(params); \
    depthwise( \
        DYNAMIC, taps, channels, output_width, (const uint8_t* const*) input, weights, (uint8_t*) output, input_stride, \
        output_increment, input_offset, (const uint8_t*) zero, &to); \
  }

DEFINE(9)
DEFINE(25)

#define DEFINE_LARGE(taps) \
  QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_##taps##p16c__neon) { \
    const struct output to = {.int8 = int8_output(params)}; \
    depthwise( \
        SIGNED, taps, channels, output_width, (const uint8_t* const*) input, weights, (uint8_t*) output, input_stride, \
        output_increment, input_offset, (const uint8_t*) zero, &to); \
  } \
  QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p16c__neon) { \
    const struct output to = unsigned_output(params); \
    depthwise( \
        UNSIGNED, taps, channels, output_width, input, weights, output, input_stride, output_increment, input_offset, \
        zero, &to); \
  }

DEFINE_LARGE(49)
DEFINE_LARGE(81)
DEFINE_LARGE(121)
DEFINE_LARGE(169)
DEFINE_LARGE(225)
