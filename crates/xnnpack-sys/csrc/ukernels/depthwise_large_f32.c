// Depthwise convolutions of fp32 with more than 25 weights, see `depthwise.h`.
//
// XNNPACK computes a convolution of one channel for each channel, 20 to 50 times as slowly. Here two vectors of 16 channels and
// four neighbouring outputs are computed at once, so that weights are loaded once for four outputs.
//
// `pixels` and `vectors` are constants wherever these functions are inlined, so that loops over them are unrolled
// and arrays become registers.

#include <immintrin.h>

#include "ukernels/depthwise.h"
#include "ukernels/depthwise_f32.h"

#define LANES DEPTHWISE_LANES
#define PIXELS 4
#define VECTORS 2
// Inputs, in whole vectors of eight addresses.
#define MAX_INPUTS 232
#define UNROLL _Pragma("GCC unroll 4")

// Computes some channels of neighbouring outputs; `lanes` are those of the last vector.
static XNN_INLINE void some_channels(
    size_t inputs, size_t pixels, size_t vectors, const struct row* row, const float* input[PIXELS][MAX_INPUTS],
    const float* weights, size_t channel, __mmask16 lanes)
{
  const size_t weights_stride = LANES * (1 + inputs);
  __m512 sum[PIXELS][VECTORS];
  UNROLL for (size_t vector = 0; vector < vectors; vector++) {
    UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
      sum[pixel][vector] = _mm512_loadu_ps(weights + vector * weights_stride);
    }
  }
  for (size_t i = 0; i < inputs; i++) {
    UNROLL for (size_t vector = 0; vector < vectors; vector++) {
      const __mmask16 some = vector + 1 == vectors ? lanes : ALL_LANES;
      const __m512 weight = _mm512_loadu_ps(weights + vector * weights_stride + LANES * (1 + i));
      UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
        const __m512 x = load(input[pixel][i] + channel + vector * LANES, some);
        sum[pixel][vector] = _mm512_fmadd_ps(x, weight, sum[pixel][vector]);
      }
    }
  }
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    float* to = (float*) ((uintptr_t) row->output + pixel * row->output_stride) + channel;
    UNROLL for (size_t vector = 0; vector < vectors; vector++) {
      store(row, to + vector * LANES, vector + 1 == vectors ? lanes : ALL_LANES, sum[pixel][vector]);
    }
  }
}

// Computes all channels of neighbouring outputs. Addresses are computed once for all channels.
static XNN_INLINE void some_pixels(
    size_t inputs, size_t pixels, struct row* row, const float* weights, size_t channels)
{
  const float* input[PIXELS][MAX_INPUTS];
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    settle_addresses(row, inputs, input[pixel]);
    row->input = (const float**) ((uintptr_t) row->input + row->input_stride);
  }
  size_t channel = 0;
  for (; channels - channel >= VECTORS * LANES; channel += VECTORS * LANES) {
    some_channels(inputs, pixels, VECTORS, row, input, weights, channel, ALL_LANES);
    weights += VECTORS * LANES * (1 + inputs);
  }
  const size_t rest = channels - channel;
  if (rest > LANES) {
    some_channels(inputs, pixels, VECTORS, row, input, weights, channel, (1 << (rest - LANES)) - 1);
  } else if (rest != 0) {
    some_channels(inputs, pixels, 1, row, input, weights, channel, (1 << rest) - 1);
  }
  row->output = (float*) ((uintptr_t) row->output + pixels * row->output_stride);
}

static void depthwise(size_t inputs, struct row row, size_t output_width, const float* weights, size_t channels) {
  for (; output_width >= PIXELS; output_width -= PIXELS) {
    some_pixels(inputs, PIXELS, &row, weights, channels);
  }
  for (; output_width != 0; output_width--) {
    some_pixels(inputs, 1, &row, weights, channels);
  }
}

#define DEPTHWISE(inputs) \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_##inputs##p16c__avx512f) { \
    assert(channels != 0 && output_width != 0); \
    depthwise( \
        inputs, row_of(input, input_stride, output, channels, output_increment, input_offset, zero, params), \
        output_width, weights, channels); \
  }

DEPTHWISE(49)
DEPTHWISE(81)
DEPTHWISE(121)
DEPTHWISE(169)
DEPTHWISE(225)
