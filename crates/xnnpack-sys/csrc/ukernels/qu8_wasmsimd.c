// Matrix products, convolutions and depthwise convolutions of uint8 for WebAssembly. XNNPACK's microkernels round sums once, as
// floats. TFLite's reference kernels, and this project's microkernels for x86-64, round fixed-point numbers (`fixed_point.h`).

#include "ukernels/qu8_wasmsimd.h"

#include "ukernels/fixed_point_wasm.h"
#include "ukernels/microkernel.h"

struct output {
  struct scaling scaling;
  v128_t zero_point;
  v128_t least;
  v128_t most;
};

static XNN_INLINE struct output output_of(const union xnn_qu8_conv_minmax_params* params) {
  const struct fixed_point scale = {params->rndnu_scalar.multiplier, (int32_t) params->rndnu_scalar.shift};
  return (struct output) {
      .scaling = params->rndnu_scalar.rounding == 1 ? scaling_once(scale) : scaling(scale),
      .zero_point = wasm_i16x8_splat((int16_t) params->rndnu_scalar.output_zero_point),
      .least = wasm_u8x16_splat((uint8_t) params->rndnu_scalar.output_min),
      .most = wasm_u8x16_splat((uint8_t) params->rndnu_scalar.output_max),
  };
}

// Stores the first `count` of eight sums as bytes.
static XNN_INLINE void store_sums(const struct output* output, const v128_t sums[2], uint8_t* to, size_t count) {
  const v128_t scaled =
      wasm_i16x8_narrow_i32x4(scale_sums(&output->scaling, sums[0]), scale_sums(&output->scaling, sums[1]));
  const v128_t words = wasm_i16x8_add_sat(scaled, output->zero_point);
  const v128_t bytes = wasm_u8x16_max(wasm_u8x16_narrow_i16x8(words, words), output->least);
  store_some(to, wasm_u8x16_min(bytes, output->most), count);
}

// Adds products of two inputs of each row and of eight channels.
static XNN_INLINE void multiply_pairs(
    size_t rows, v128_t sums[][2], const v128_t pairs[], const uint8_t* weights, v128_t weights_zero_point)
{
  const v128_t bytes = wasm_v128_load(weights);
  const v128_t low = wasm_i16x8_sub(wasm_u16x8_extend_low_u8x16(bytes), weights_zero_point);
  const v128_t high = wasm_i16x8_sub(wasm_u16x8_extend_high_u8x16(bytes), weights_zero_point);
  for (size_t row = 0; row < rows; row++) {
    sums[row][0] = wasm_i32x4_add(sums[row][0], wasm_i32x4_dot_i16x8(pairs[row], low));
    sums[row][1] = wasm_i32x4_add(sums[row][1], wasm_i32x4_dot_i16x8(pairs[row], high));
  }
}

#define MULTIPLY_PAIR_OF_EIGHT(pair) \
  for (size_t row = 0; row < rows; row++) { \
    pairs[row] = wasm_i32x4_shuffle(inputs[row], inputs[row], pair, pair, pair, pair); \
  } \
  multiply_pairs(rows, sums, pairs, weights, weights_zero_point); \
  weights += 2 * QU8_WASM_CHANNELS

// Adds products of `count` inputs of each row. Returns the address behind the weights.
static XNN_INLINE const uint8_t* multiply(
    size_t rows, v128_t sums[][2], const uint8_t* const of_rows[], size_t count, const uint8_t* weights,
    v128_t weights_zero_point)
{
  v128_t pairs[QU8_WASM_ROWS];
  size_t at = 0;
  for (; count - at >= 8; at += 8) {
    v128_t inputs[QU8_WASM_ROWS];
    for (size_t row = 0; row < rows; row++) {
      inputs[row] = wasm_u16x8_load8x8(of_rows[row] + at);
    }
    MULTIPLY_PAIR_OF_EIGHT(0);
    MULTIPLY_PAIR_OF_EIGHT(1);
    MULTIPLY_PAIR_OF_EIGHT(2);
    MULTIPLY_PAIR_OF_EIGHT(3);
  }
  for (; at < count; at += 2) {
    for (size_t row = 0; row < rows; row++) {
      // The weight of the missing input is padding.
      const uint32_t second = at + 1 < count ? of_rows[row][at + 1] : 0;
      pairs[row] = wasm_u32x4_splat(of_rows[row][at] | second << 16);
    }
    multiply_pairs(rows, sums, pairs, weights, weights_zero_point);
    weights += 2 * QU8_WASM_CHANNELS;
  }
  return weights;
}

// Sums begin with the bias. Returns the address behind it.
static XNN_INLINE const uint8_t* load_bias(size_t rows, v128_t sums[][2], const uint8_t* weights) {
  for (size_t row = 0; row < rows; row++) {
    sums[row][0] = wasm_v128_load(weights);
    sums[row][1] = wasm_v128_load(weights + sizeof(v128_t));
  }
  return weights + QU8_WASM_CHANNELS * sizeof(int32_t);
}

// Rows behind the last are stored first: they have its address.
static XNN_INLINE void store_rows(
    size_t rows, size_t mr, const struct output* output, v128_t sums[][2], uint8_t* to, size_t stride, size_t count)
{
  for (size_t row = rows; row-- > 0;) {
    store_sums(output, sums[row], to + (row < mr ? row : mr - 1) * stride, count);
  }
}

static XNN_INLINE void gemm(
    size_t rows, size_t mr, size_t nc, size_t kc, const uint8_t* a, size_t a_stride, const uint8_t* weights, uint8_t* c,
    size_t cm_stride, size_t cn_stride, const union xnn_qu8_conv_minmax_params* params)
{
  ASSERT_GEMM(rows, sizeof(uint8_t));
  const struct output output = output_of(params);
  const v128_t zero_point = wasm_i16x8_splat((int16_t) params->rndnu_scalar.kernel_zero_point);
  const uint8_t* of_rows[QU8_WASM_ROWS];
  for (size_t row = 0; row < rows; row++) {
    of_rows[row] = a + (row < mr ? row : mr - 1) * a_stride;
  }
  for (;;) {
    v128_t sums[QU8_WASM_ROWS][2];
    weights = load_bias(rows, sums, weights);
    weights = multiply(rows, sums, of_rows, kc, weights, zero_point);
    store_rows(rows, mr, &output, sums, c, cm_stride, nc);
    if (nc <= QU8_WASM_CHANNELS) {
      return;
    }
    nc -= QU8_WASM_CHANNELS;
    c += cn_stride;
  }
}

static XNN_INLINE void igemm(
    size_t rows, size_t mr, size_t nc, size_t kc, size_t ks, const void** a, const uint8_t* weights, uint8_t* c,
    size_t cm_stride, size_t cn_stride, size_t a_offset, const void* zero,
    const union xnn_qu8_conv_minmax_params* params)
{
  ASSERT_IGEMM(rows, sizeof(uint8_t));
  const struct output output = output_of(params);
  const v128_t zero_point = wasm_i16x8_splat((int16_t) params->rndnu_scalar.kernel_zero_point);
  const size_t positions = ks / (rows * sizeof(void*));
  for (;;) {
    v128_t sums[QU8_WASM_ROWS][2];
    weights = load_bias(rows, sums, weights);
    for (size_t position = 0; position < positions; position++) {
      const uint8_t* of_rows[QU8_WASM_ROWS];
      for (size_t row = 0; row < rows; row++) {
        of_rows[row] = input_at(a[position * rows + row], zero, a_offset);
      }
      weights = multiply(rows, sums, of_rows, kc, weights, zero_point);
    }
    store_rows(rows, mr, &output, sums, c, cm_stride, nc);
    if (nc <= QU8_WASM_CHANNELS) {
      return;
    }
    nc -= QU8_WASM_CHANNELS;
    c += cn_stride;
  }
}

#define DEFINE_GEMM(rows) \
  void xnnpack_sys_qu8_gemm_minmax_ukernel_##rows##x8c2__wasmsimd( \
      size_t mr, size_t nc, size_t kc, const void* a, size_t a_stride, const void* w, void* c, size_t cm_stride, \
      size_t cn_stride, const void* params) \
  { \
    gemm(rows, mr, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params); \
  } \
  void xnnpack_sys_qu8_igemm_minmax_ukernel_##rows##x8c2__wasmsimd( \
      size_t mr, size_t nc, size_t kc, size_t ks, const void** a, const void* w, void* c, size_t cm_stride, \
      size_t cn_stride, size_t a_offset, const void* zero, const void* params) \
  { \
    igemm(rows, mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params); \
  }

DEFINE_GEMM(1)
DEFINE_GEMM(4)

// XNNPACK lets microkernels read up to 16 bytes behind inputs.
static XNN_INLINE void depthwise(
    size_t taps, size_t channels, size_t output_width, const void** input, const uint8_t* weights, uint8_t* to,
    intptr_t input_stride, size_t output_increment, size_t input_offset, const void* zero,
    const union xnn_qu8_conv_minmax_params* params)
{
  assert(channels != 0);
  assert(output_width != 0);
  const struct output output = output_of(params);
  const v128_t zero_point = wasm_i16x8_splat((int16_t) params->rndnu_scalar.kernel_zero_point);
  for (; output_width != 0; output_width--) {
    const uint8_t* w = weights;
    for (size_t channel = 0; channel < channels; channel += QU8_WASM_DEPTHWISE_CHANNELS) {
      v128_t sums[2] = {wasm_v128_load(w), wasm_v128_load(w + sizeof(v128_t))};
      w += QU8_WASM_DEPTHWISE_CHANNELS * sizeof(int32_t);
      for (size_t tap = 0; tap < taps; tap++) {
        const uint8_t* from = input_at(input[tap], zero, input_offset);
        const v128_t inputs = wasm_u16x8_load8x8(from + channel);
        const v128_t factors = wasm_i16x8_sub(wasm_u16x8_load8x8(w), zero_point);
        w += QU8_WASM_DEPTHWISE_CHANNELS;
        sums[0] = wasm_i32x4_add(sums[0], wasm_i32x4_extmul_low_i16x8(inputs, factors));
        sums[1] = wasm_i32x4_add(sums[1], wasm_i32x4_extmul_high_i16x8(inputs, factors));
      }
      store_sums(&output, sums, to + channel, channels - channel);
    }
    to += channels + output_increment;
    input = (const void**) ((uintptr_t) input + (size_t) input_stride);
  }
}

#define DEFINE_DEPTHWISE(taps) \
  void xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p8c__wasmsimd( \
      size_t channels, size_t output_width, const void** input, const void* weights, void* output, \
      intptr_t input_stride, size_t output_increment, size_t input_offset, const void* zero, const void* params) \
  { \
    depthwise( \
        taps, channels, output_width, input, weights, output, input_stride, output_increment, input_offset, zero, params); \
  }

DEFINE_DEPTHWISE(9)
DEFINE_DEPTHWISE(25)
