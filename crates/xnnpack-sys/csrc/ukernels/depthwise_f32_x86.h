// Depthwise convolutions of fp32, see `depthwise.h`: included by a file for each instruction set, which defines `ISA`. `kernel`, `step`
// and `pixels` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become registers.
//
// Neighbouring outputs are computed at once: an input that they share is loaded once. XNNPACK's microkernels load an input and a
// weight for each product.

#include <assert.h>
#include <stdbool.h>

#include "ukernels/addresses.h"
#include "ukernels/depthwise.h"
#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

#include "ukernels/depthwise_f32_row.h"

// Without FMA, GCC 12 would compute the products of several inputs before it adds any, and spill them.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__FMA__)
#pragma GCC optimize("no-tree-ter", "no-tree-coalesce-vars")
#endif

// Neighbouring outputs that are computed at once, and the most inputs of such outputs.
#define MAX_PIXELS 4
#define MAX_INPUTS 55
#define UNROLL _Pragma("GCC unroll 16")

// Computes up to a vector of channels of some outputs.
static XNN_INLINE void some_channels(
    size_t kernel, size_t step, size_t pixels, const struct row* row, const float* const input[MAX_INPUTS],
    const float* weights, size_t channel, size_t count)
{
  vfloat sum[MAX_PIXELS];
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    sum[pixel] = VINT(loadu_ps, weights);
  }
  UNROLL for (size_t column = 0; column < (pixels - 1) * step + kernel; column++) {
    UNROLL for (size_t y = 0; y < kernel; y++) {
      const vfloat x = vfloat_load(input[column * kernel + y] + channel, count);
      UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
        if (column >= pixel * step && column < pixel * step + kernel) {
          const size_t tap = (column - pixel * step) * kernel + y;
          sum[pixel] = vfloat_add_product(sum[pixel], x, VINT(loadu_ps, weights + DEPTHWISE_LANES * (1 + tap)));
        }
      }
    }
  }
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    float* to = (float*) ((uintptr_t) row->output + pixel * row->output_stride) + channel;
    vfloat_store(to, vfloat_clamp(sum[pixel], row->min, row->max), count);
  }
}

// Computes all channels of some outputs. Addresses are computed once for all channels.
static XNN_INLINE void some_pixels(
    size_t kernel, size_t step, size_t pixels, struct row* row, const float* weights, size_t channels)
{
  const float* input[MAX_INPUTS];
  settle_addresses(row->input, ((pixels - 1) * step + kernel) * kernel, row->zero, row->input_offset, input);
  size_t channel = 0;
  for (; channels - channel >= VECTOR_LANES; channel += VECTOR_LANES) {
    some_channels(kernel, step, pixels, row, input, weights, channel, VECTOR_LANES);
    const bool is_end = (channel + VECTOR_LANES) % DEPTHWISE_LANES == 0;
    weights += is_end ? DEPTHWISE_LANES * kernel * kernel + VECTOR_LANES : VECTOR_LANES;
  }
  if (channel != channels) {
    some_channels(kernel, step, pixels, row, input, weights, channel, channels - channel);
  }
  row->input = (const float**) ((uintptr_t) row->input + pixels * row->input_stride);
  row->output = (float*) ((uintptr_t) row->output + pixels * row->output_stride);
}

static XNN_INLINE void depthwise_by(
    size_t kernel, size_t step, struct row row, size_t output_width, const float* weights, size_t channels)
{
  for (; output_width >= MAX_PIXELS; output_width -= MAX_PIXELS) {
    some_pixels(kernel, step, MAX_PIXELS, &row, weights, channels);
  }
  if (output_width >= 2) {
    some_pixels(kernel, step, 2, &row, weights, channels);
    output_width -= 2;
  }
  if (output_width != 0) {
    some_pixels(kernel, step, 1, &row, weights, channels);
  }
}

static XNN_INLINE void depthwise(
    size_t kernel, struct row row, size_t output_width, const float* weights, size_t channels)
{
  const intptr_t column = (intptr_t) (kernel * sizeof(void*));
  if (row.input_stride == column) {
    depthwise_by(kernel, 1, row, output_width, weights, channels);
  } else if (row.input_stride == 2 * column) {
    depthwise_by(kernel, 2, row, output_width, weights, channels);
  } else {
    for (; output_width != 0; output_width--) {
      some_pixels(kernel, 1, 1, &row, weights, channels);
    }
  }
}

#define MICROKERNEL(taps, kernel) \
  F32_DEPTHWISE(WITH_ISA(xnnpack_sys_f32_dwconv_minmax_ukernel_##taps##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    const struct row row = \
        row_of(input, input_stride, output, channels, output_increment, input_offset, zero, params); \
    depthwise(kernel, row, output_width, weights, channels); \
  }

MICROKERNEL(9, 3)
MICROKERNEL(25, 5)
