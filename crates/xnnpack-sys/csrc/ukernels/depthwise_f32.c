// Depthwise convolutions of fp32, see `depthwise.h`. `kernel`, `step` and `pixels` are constants wherever
// these functions are inlined, so that loops over them are unrolled and arrays become registers.

#include <stdbool.h>

#include <immintrin.h>

#include "ukernels/depthwise.h"
#include "ukernels/depthwise_f32.h"
#include "xnnpack/dwconv.h"
#include "xnnpack/math.h"

#define LANES DEPTHWISE_LANES
#define MAX_KERNEL 5
#define MAX_WEIGHTS (MAX_KERNEL * MAX_KERNEL)
// Neighbouring outputs that are computed at once.
#define MAX_PIXELS 4
// The most inputs of such outputs, in whole vectors of eight addresses.
#define MAX_INPUTS 56
// `input_stride` of outputs that are `step` columns of the input apart.
#define COLUMNS(count, kernel) ((intptr_t) ((count) * (kernel) * sizeof(void*)))
#define UNROLL _Pragma("GCC unroll 25")

static XNN_INLINE void load_weights(size_t kernel, const float* weights, __m512 to[MAX_WEIGHTS]) {
  UNROLL for (size_t i = 0; i < kernel * kernel; i++) {
    to[i] = _mm512_loadu_ps(weights + LANES * (1 + i));
  }
}

// Computes some channels of a whole row. Columns move on from pixel to pixel: each input is loaded once.

static XNN_INLINE void load_columns(
    size_t from, size_t to, size_t kernel, const struct row* row, const float** input, size_t channel,
    __mmask16 lanes, __m512 x[MAX_WEIGHTS])
{
  UNROLL for (size_t i = from * kernel; i < to * kernel; i++) {
    x[i] = load((const float*) input_at(input[i], row->zero, row->input_offset) + channel, lanes);
  }
}

static XNN_INLINE void sweep(
    size_t kernel, size_t step, const struct row* row, size_t output_width, const float* weights,
    size_t channel, __mmask16 lanes)
{
  __m512 k[MAX_WEIGHTS];
  load_weights(kernel, weights, k);
  const __m512 bias = _mm512_loadu_ps(weights);
  const size_t shared = kernel - step;
  const float** input = row->input;
  float* output = row->output + channel;
  __m512 x[MAX_WEIGHTS];
  load_columns(0, shared, kernel, row, input, channel, lanes, x);
  do {
    load_columns(shared, kernel, kernel, row, input, channel, lanes, x);
    __m512 sum = bias;
    UNROLL for (size_t i = 0; i < kernel * kernel; i++) {
      sum = _mm512_fmadd_ps(x[i], k[i], sum);
    }
    store(row, output, lanes, sum);
    UNROLL for (size_t i = 0; i < shared * kernel; i++) {
      x[i] = x[i + step * kernel];
    }
    input = (const float**) ((uintptr_t) input + row->input_stride);
    output = (float*) ((uintptr_t) output + row->output_stride);
  } while (--output_width != 0);
}

static XNN_INLINE void sweep_channels(
    size_t kernel, size_t step, const struct row* row, size_t output_width, const float* weights, size_t channels)
{
  size_t channel = 0;
  for (; channels - channel >= LANES; channel += LANES) {
    sweep(kernel, step, row, output_width, weights, channel, ALL_LANES);
    weights += LANES * (1 + kernel * kernel);
  }
  if (channel != channels) {
    sweep(kernel, step, row, output_width, weights, channel, (1 << (channels - channel)) - 1);
  }
}

// Computes all channels of a few pixels. Addresses are computed once for all channels.

static XNN_INLINE void tile_lanes(
    size_t kernel, size_t step, size_t pixels, const struct row* row, const float* const input[MAX_INPUTS],
    const float* weights, size_t channel, __mmask16 lanes)
{
  __m512 k[MAX_WEIGHTS];
  load_weights(kernel, weights, k);
  __m512 sum[MAX_PIXELS];
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    sum[pixel] = _mm512_loadu_ps(weights);
  }
  UNROLL for (size_t column = 0; column < (pixels - 1) * step + kernel; column++) {
    UNROLL for (size_t y = 0; y < kernel; y++) {
      const __m512 x = load(input[column * kernel + y] + channel, lanes);
      UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
        if (column >= pixel * step && column < pixel * step + kernel) {
          sum[pixel] = _mm512_fmadd_ps(x, k[(column - pixel * step) * kernel + y], sum[pixel]);
        }
      }
    }
  }
  UNROLL for (size_t pixel = 0; pixel < pixels; pixel++) {
    store(row, (float*) ((uintptr_t) row->output + pixel * row->output_stride) + channel, lanes, sum[pixel]);
  }
}

static XNN_INLINE void tile(
    size_t kernel, size_t step, size_t pixels, struct row* row, const float* weights, size_t channels)
{
  const float* input[MAX_INPUTS];
  settle_addresses(row->input, ((pixels - 1) * step + kernel) * kernel, row->zero, row->input_offset, input);
  size_t channel = 0;
  for (; channels - channel >= LANES; channel += LANES) {
    tile_lanes(kernel, step, pixels, row, input, weights, channel, ALL_LANES);
    weights += LANES * (1 + kernel * kernel);
  }
  if (channel != channels) {
    tile_lanes(kernel, step, pixels, row, input, weights, channel, (1 << (channels - channel)) - 1);
  }
  row->input = (const float**) ((uintptr_t) row->input + pixels * row->input_stride);
  row->output = (float*) ((uintptr_t) row->output + pixels * row->output_stride);
}

static XNN_INLINE void tile_pixels(
    size_t kernel, size_t step, struct row* row, size_t output_width, const float* weights, size_t channels)
{
  for (; output_width >= 4; output_width -= 4) {
    tile(kernel, step, 4, row, weights, channels);
  }
  if (output_width >= 2) {
    tile(kernel, step, 2, row, weights, channels);
    output_width -= 2;
  }
  if (output_width != 0) {
    tile(kernel, step, 1, row, weights, channels);
  }
}

// The first-level cache.
#define CACHE_LINE 64
#define CACHE_SETS 64
#define CACHE_WAYS 12
#define CACHE (CACHE_LINE * CACHE_SETS * CACHE_WAYS)

// Whether sweeps over a row are faster than tiles of pixels. A sweep loads fewer inputs and weights, but passes over three rows of
// inputs and one of outputs again for every 16 channels, a pixel apart.
static bool sweeps_pay(size_t step, const struct row* row, size_t output_width) {
  const size_t pixel = row->output_stride;
  if (step == 2) {
    // Outputs share one column only. Prefetching fails too often for large pixels.
    return output_width * pixel * (3 * step + 1) <= CACHE && pixel < 4 * CACHE_LINE;
  }
  // Short rows do not fill whole tiles.
  if (output_width < 16) {
    return true;
  }
  // A line of each input must stay in the cache. Lines at a distance of a power of two share few sets.
  const size_t power_of_two = min(max(pixel & -pixel, CACHE_LINE), CACHE_LINE * CACHE_SETS);
  return 3 * output_width * power_of_two <= CACHE;
}

static XNN_INLINE void by_cache(
    size_t step, struct row* row, size_t output_width, const float* weights, size_t channels)
{
  if (sweeps_pay(step, row, output_width)) {
    sweep_channels(3, step, row, output_width, weights, channels);
  } else {
    tile_pixels(3, step, row, output_width, weights, channels);
  }
}

F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_9p16c__avx512f) {
  assert(channels != 0 && output_width != 0);
  struct row row = row_of(input, input_stride, output, channels, output_increment, input_offset, zero, params);
  if (input_stride == COLUMNS(1, 3)) {
    by_cache(1, &row, output_width, weights, channels);
  } else if (input_stride == COLUMNS(2, 3)) {
    by_cache(2, &row, output_width, weights, channels);
  } else {
    xnn_f32_dwconv_minmax_ukernel_9p16c__avx512f(
        channels, output_width, input, weights, output, input_stride, output_increment, input_offset, zero, params);
  }
}

F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_25p16c__avx512f) {
  assert(channels != 0 && output_width != 0);
  struct row row = row_of(input, input_stride, output, channels, output_increment, input_offset, zero, params);
  if (input_stride == COLUMNS(1, 5)) {
    tile_pixels(5, 1, &row, output_width, weights, channels);
  } else if (input_stride == COLUMNS(2, 5)) {
    tile_pixels(5, 2, &row, output_width, weights, channels);
  } else {
    xnn_f32_dwconv_minmax_ukernel_25p16c__avx512f(
        channels, output_width, input, weights, output, input_stride, output_increment, input_offset, zero, params);
  }
}
