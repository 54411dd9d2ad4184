// Depthwise convolutions of fp32 with more than 25 weights, see `depthwise.h`.
//
// XNNPACK computes them as as many convolutions of one channel each, 20 to 50 times as slowly. Here vectors have 16
// channels, of two vectors and four neighbouring outputs at once, so that weights are loaded once for four.
//
// `pixels` and `vectors` are constants wherever these functions are inlined, so that loops over them are unrolled
// and arrays become registers.

#include <immintrin.h>

#include "depthwise.h"
#include "microkernel.h"
#include "xnnpack/math.h"

#define LANES DEPTHWISE_LANES
#define PIXELS 4
#define VECTORS 2
// In whole vectors of eight addresses.
#define MAX_INPUTS 232
#define UNROLL _Pragma("GCC unroll 4")

struct row {
  const float** input;
  intptr_t input_stride;
  float* output;
  size_t output_stride;
  // What to add to the address of an input other than `zero`.
  size_t input_offset;
  const float* zero;
  __m512 min;
  __m512 max;
};

// Some channels of neighbouring outputs; `lanes` are those of the last vector.
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
        const float* from = input[pixel][i] + channel + vector * LANES;
        const __m512 x = some == ALL_LANES ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(some, from);
        sum[pixel][vector] = _mm512_fmadd_ps(x, weight, sum[pixel][vector]);
      }
    }
  }
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    float* to = (float*) ((uintptr_t) row->output + pixel * row->output_stride) + channel;
    UNROLL for (size_t vector = 0; vector < vectors; vector++) {
      const __m512 clamped = _mm512_min_ps(_mm512_max_ps(sum[pixel][vector], row->min), row->max);
      _mm512_mask_storeu_ps(to + vector * LANES, vector + 1 == vectors ? lanes : ALL_LANES, clamped);
    }
  }
}

// All channels of neighbouring outputs. Addresses are settled once for all channels.
static XNN_INLINE void some_pixels(
    size_t inputs, size_t pixels, struct row* row, const float* weights, size_t channels)
{
  const float* input[PIXELS][MAX_INPUTS];
  const __m512i zero = _mm512_set1_epi64((int64_t) (uintptr_t) row->zero);
  const __m512i offset = _mm512_set1_epi64((int64_t) row->input_offset);
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    for (size_t i = 0; i < inputs; i += 8) {
      const __mmask8 some = (__mmask8) ((1 << min(inputs - i, 8)) - 1);
      const __m512i at = _mm512_maskz_loadu_epi64(some, row->input + i);
      _mm512_storeu_si512(
          input[pixel] + i, _mm512_mask_add_epi64(at, _mm512_cmpneq_epi64_mask(at, zero), at, offset));
    }
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
  F32_DEPTHWISE(xnnpack_sys_f32_depthwise_##inputs##p16c) { \
    const struct row row = { \
        .input = input, \
        .input_stride = input_stride, \
        .output = output, \
        .output_stride = channels * sizeof(float) + output_increment, \
        .input_offset = input_offset, \
        .zero = zero, \
        .min = _mm512_set1_ps(params->scalar.min), \
        .max = _mm512_set1_ps(params->scalar.max), \
    }; \
    depthwise(inputs, row, output_width, weights, channels); \
  }

DEPTHWISE(49)
DEPTHWISE(81)
DEPTHWISE(121)
DEPTHWISE(169)
DEPTHWISE(225)
