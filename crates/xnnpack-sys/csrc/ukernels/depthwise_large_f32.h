// Depthwise convolutions of fp32 with more than 25 weights, or whose neighbouring outputs share few inputs or none, see `depthwise.h`:
// included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK computes a convolution of one channel for each channel if there are more than 25 weights, 20 to 50 times as slowly on x86.
// Here some vectors of channels and some neighbouring outputs are computed at once, so that weights are loaded once for these outputs.
//
// `pixels` and `vectors` are constants wherever these functions are inlined, so that loops over them are unrolled
// and arrays become registers.

#include <assert.h>

#include "ukernels/addresses.h"
#include "ukernels/depthwise.h"
#include "ukernels/with_isa.h"
#ifdef __aarch64__
#include "ukernels/vector_neon.h"
#else
#include "ukernels/vector_x86.h"
#endif

#include "ukernels/depthwise_f32_row.h"

// Outputs that are computed at once.
#ifndef PIXELS
#define PIXELS 4
#endif
// Vectors that are computed at once: one or more whole blocks of packed weights.
#ifndef VECTORS
#define VECTORS 2
#endif
#define MAX_INPUTS ADDRESSES(225)
// Vectors in a block of packed weights.
#define VECTORS_OF_BLOCK (DEPTHWISE_LANES / VECTOR_LANES)
#define UNROLL _Pragma("GCC unroll 4")

// Weights of a vector of channels: those of the `vector`-th one from a block on.
static XNN_INLINE const float* weights_of(const float* weights, size_t inputs, size_t vector) {
  return weights + vector / VECTORS_OF_BLOCK * DEPTHWISE_LANES * (1 + inputs) + vector % VECTORS_OF_BLOCK * VECTOR_LANES;
}

// Computes some channels of neighbouring outputs; `count` are those of the last vector.
static XNN_INLINE void some_channels(
    size_t inputs, size_t pixels, size_t vectors, const struct row* row, const float* input[PIXELS][MAX_INPUTS],
    const float* weights, size_t channel, size_t count)
{
  vfloat sum[PIXELS][VECTORS];
  UNROLL for (size_t vector = 0; vector < vectors; vector++) {
    UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
      sum[pixel][vector] = VINT(loadu_ps, weights_of(weights, inputs, vector));
    }
  }
  for (size_t i = 0; i < inputs; i++) {
    UNROLL for (size_t vector = 0; vector < vectors; vector++) {
      const size_t some = vector + 1 == vectors ? count : VECTOR_LANES;
      const vfloat weight = VINT(loadu_ps, weights_of(weights, inputs, vector) + DEPTHWISE_LANES * (1 + i));
      UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
        const vfloat x = vfloat_load(input[pixel][i] + channel + vector * VECTOR_LANES, some);
        sum[pixel][vector] = vfloat_add_product(sum[pixel][vector], x, weight);
      }
    }
  }
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    float* to = (float*) ((uintptr_t) row->output + pixel * row->output_stride) + channel;
    UNROLL for (size_t vector = 0; vector < vectors; vector++) {
      const vfloat clamped = vfloat_clamp(sum[pixel][vector], row->min, row->max);
      vfloat_store(to + vector * VECTOR_LANES, clamped, vector + 1 == vectors ? count : VECTOR_LANES);
    }
  }
}

// Computes all channels of neighbouring outputs. Addresses are computed once for all channels.
static XNN_INLINE void some_pixels(
    size_t inputs, size_t pixels, struct row* row, const float* weights, size_t channels)
{
  const float* input[PIXELS][MAX_INPUTS];
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    settle_addresses(row->input, inputs, row->zero, row->input_offset, input[pixel]);
    row->input = (const float**) ((uintptr_t) row->input + row->input_stride);
  }
  enum { CHANNELS = VECTORS * VECTOR_LANES };
  size_t channel = 0;
  for (; channels - channel >= CHANNELS; channel += CHANNELS) {
    some_channels(inputs, pixels, VECTORS, row, input, weights, channel, VECTOR_LANES);
    weights = weights_of(weights, inputs, VECTORS);
  }
  const size_t rest = channels - channel;
  // The constants let compilers unroll loops over vectors. The last vector may have fewer channels.
  if (VECTORS > 3 && rest > 3 * VECTOR_LANES) {
    some_channels(inputs, pixels, 4, row, input, weights, channel, rest - 3 * VECTOR_LANES);
  } else if (VECTORS > 2 && rest > 2 * VECTOR_LANES) {
    some_channels(inputs, pixels, 3, row, input, weights, channel, rest - 2 * VECTOR_LANES);
  } else if (rest > VECTOR_LANES) {
    some_channels(inputs, pixels, 2, row, input, weights, channel, rest - VECTOR_LANES);
  } else if (rest != 0) {
    some_channels(inputs, pixels, 1, row, input, weights, channel, rest);
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

#define DEPTHWISE(type, inputs) \
  F32_DEPTHWISE(WITH_ISA(xnnpack_sys_##type##_dwconv_minmax_ukernel_##inputs##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    const struct row row = \
        row_of(input, input_stride, output, channels, output_increment, input_offset, zero, params); \
    depthwise(inputs, row, output_width, weights, channels); \
  }

DEPTHWISE(f32, 49)
DEPTHWISE(f32, 81)
DEPTHWISE(f32, 121)
DEPTHWISE(f32, 169)
DEPTHWISE(f32, 225)

#ifdef __AVX__
DEPTHWISE(f32_separate, 9)
#endif
#ifdef __SSE4_1__
DEPTHWISE(f32_separate, 25)
#endif
