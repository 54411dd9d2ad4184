// Means of windows of few floats, see `pool_f32.h`: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK takes four channels, and nine elements of each window, zeros behind the last ones. It computes windows of other sizes;
// results are the same. NaN propagates.

#include "ukernels/microkernel.h"
#include "ukernels/pool_f32.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/avgpool.h"
#include "xnnpack/pavgpool.h"

#define UNROLL _Pragma("GCC unroll 9")

struct windows {
  size_t channels;
  // Added to addresses of elements other than `zero`.
  size_t input_offset;
  const float* zero;
  vfloat min;
  vfloat max;
};

// Adds in the order of XNNPACK's function.
static XNN_INLINE vfloat sum(size_t elements, const vfloat x[POOL_PASS]) {
  const vfloat pair = VINT(add_ps, x[0], x[1]);
  switch (elements) {
    case 2: return pair;
    case 3: return VINT(add_ps, x[2], pair);
    case 4: return VINT(add_ps, VINT(add_ps, x[2], x[3]), pair);
    default: {
      const vfloat front = VINT(add_ps, VINT(add_ps, x[2], x[3]), VINT(add_ps, x[4], x[5]));
      return VINT(add_ps, front, VINT(add_ps, VINT(add_ps, pair, x[8]), VINT(add_ps, x[6], x[7])));
    }
  }
}

// Computes up to a vector of channels.
static XNN_INLINE void store_some(
    size_t elements, const struct windows* windows, const float* const at[POOL_PASS], size_t channel, size_t count,
    float scale, float* output)
{
  vfloat x[POOL_PASS];
  UNROLL for (size_t i = 0; i < elements; i++) {
    x[i] = vfloat_load(at[i] + channel, count);
  }
  const vfloat mean = VINT(mul_ps, sum(elements, x), VINT(set1_ps, scale));
  vfloat_store(output + channel, vfloat_clamp(mean, windows->min, windows->max), count);
}

// `elements` is a constant wherever this is inlined.
static XNN_INLINE void store_mean(
    size_t elements, const struct windows* windows, const float** input, float scale, float* output)
{
  const float* at[POOL_PASS];
  UNROLL for (size_t i = 0; i < elements; i++) {
    at[i] = input_at(input[i], windows->zero, windows->input_offset);
  }
  const size_t channels = windows->channels;
  size_t channel = 0;
  for (; channels - channel >= VECTOR_LANES; channel += VECTOR_LANES) {
    store_some(elements, windows, at, channel, VECTOR_LANES, scale, output);
  }
  if (channel != channels) {
    store_some(elements, windows, at, channel, channels - channel, scale, output);
  }
}

// Returns false for windows of other sizes than 2, 3, 4 and 9.
static XNN_INLINE bool store_mean_of_few(
    size_t elements, const struct windows* windows, const float** input, float scale, float* output)
{
  switch (elements) {
    case 2: store_mean(2, windows, input, scale, output); return true;
    case 3: store_mean(3, windows, input, scale, output); return true;
    case 4: store_mean(4, windows, input, scale, output); return true;
    case 9: store_mean(9, windows, input, scale, output); return true;
    default: return false;
  }
}

// Uses the parameters of a microkernel.
#define WINDOWS \
  ((struct windows) { \
      .channels = channels, .input_offset = input_offset, .zero = zero, .min = VINT(set1_ps, params->scalar.min), \
      .max = VINT(set1_ps, params->scalar.max)})

F32_AVGPOOL(WITH_ISA(xnnpack_sys_f32_avgpool_minmax_ukernel_9x__)) {
  assert(output_pixels != 0 && kernel_elements != 0 && channels != 0);
  const struct windows windows = WINDOWS;
  for (; output_pixels > 0; output_pixels--) {
    if (!store_mean_of_few(kernel_elements, &windows, input, params->scalar.scale, output)) {
      xnn_f32_avgpool_minmax_ukernel_9x__sse_c4(
          output_pixels, kernel_elements, channels, input, input_offset, zero, output, input_increment, output_increment,
          params);
      return;
    }
    input = (const float**) ((uintptr_t) input + input_increment);
    output = (float*) ((uintptr_t) (output + channels) + output_increment);
  }
}

F32_PAVGPOOL(WITH_ISA(xnnpack_sys_f32_pavgpool_minmax_ukernel_9x__)) {
  assert(output_pixels != 0 && kernel_elements != 0 && channels != 0);
  const struct windows windows = WINDOWS;
  for (; output_pixels > 0; output_pixels--) {
    if (!store_mean_of_few(kernel_elements, &windows, input, *multiplier, output)) {
      xnn_f32_pavgpool_minmax_ukernel_9x__sse_c4(
          output_pixels, kernel_elements, channels, input, input_offset, zero, multiplier, output, input_increment,
          output_increment, params);
      return;
    }
    multiplier++;
    input = (const float**) ((uintptr_t) input + input_increment);
    output = (float*) ((uintptr_t) (output + channels) + output_increment);
  }
}
