// Depthwise convolutions of 8-bit integers with more than 25 weights: a part of `depthwise_q8_x86.h`, which includes it.
//
// XNNPACK computes a convolution of one channel for each channel, 20 to 40 times as slowly. Here the weights of some channels are widened
// once for many outputs of a row, and each column of inputs once for all of the neighbouring outputs that share it.
//
// A kernel is a square of columns for as many weights as the microkernel has, whatever its own shape. Outputs share columns if each
// begins a number of whole columns after the one before.

#include "ukernels/addresses.h"

#define MAX_LARGE_KERNEL 15
#define MAX_LARGE_PAIRS PAIRS(MAX_LARGE_KERNEL)
// Addresses of the inputs of some outputs, which all channels share.
#define MAX_ADDRESSES 1024
// Outputs that are computed at once.
#define PIXELS (8 / GROUPS)
#define UNROLL_8 _Pragma("GCC unroll 8")

// Two rows of weights, or of inputs, for LANES channels.
struct pair {
  vint of[GROUPS];
};

struct large_filter {
  struct pair columns[MAX_LARGE_KERNEL][MAX_LARGE_PAIRS];
  vint start[GROUPS];
  vfloat scale[GROUPS];
};

// Interleaves two rows. The second one may be missing: then the upper half of each lane is multiplied by 0.
static XNN_INLINE struct pair pair_of(enum kind kind, __m128i first, const __m128i* second) {
  struct pair pair;
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    pair.of[group] = second != NULL ? interleave(kind, first, *second, group) : widen_row(kind, first, group);
  }
  return pair;
}

static void load_large_filter(
    enum kind kind, size_t kernel, int16_t zero_point, const void* weights, size_t first, struct large_filter* filter)
{
  const int32_t* biases = weights;
  const int8_t* bytes = (const int8_t*) (biases + DEPTHWISE_LANES);
  const float* scales = (const float*) (bytes + DEPTHWISE_LANES * kernel * kernel);
  for (size_t x = 0; x < kernel; x++) {
    for (size_t i = 0; i < PAIRS(kernel); i++) {
      const int8_t* from = bytes + DEPTHWISE_LANES * (kernel * x + 2 * i) + first;
      const bool is_alone = 2 * i + 1 == kernel;
      const __m128i second = is_alone ? _mm_setzero_si128() : load_bytes(from + DEPTHWISE_LANES, LANES);
      struct pair pair = pair_of(kind, load_bytes(from, LANES), is_alone ? NULL : &second);
      UNROLL for (size_t group = 0; group < GROUPS; group++) {
        if (kind == UNSIGNED) {
          pair.of[group] = VINT(sub_epi16, pair.of[group], VINT(set1_epi16, zero_point));
        }
        if (is_alone) {
          pair.of[group] = VINT_BITS(and, pair.of[group], VINT(set1_epi32, 0xFFFF));
        }
      }
      filter->columns[x][i] = pair;
    }
  }
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    const size_t from = first + group * VECTOR_LANES;
    filter->start[group] = vint_load(biases + from);
    filter->scale[group] = kind == UNSIGNED ? VINT(setzero_ps) : VINT(loadu_ps, scales + from);
  }
}

// Computes sums of up to PIXELS outputs, each `step` columns after the one before.
static XNN_INLINE void sum_outputs(
    enum kind kind, size_t kernel, size_t step, size_t outputs, const int8_t* const* input, const struct large_filter* filter,
    size_t channel, size_t channels, vint sums[PIXELS * GROUPS])
{
  UNROLL_8 for (size_t i = 0; i < PIXELS * GROUPS; i++) {
    sums[i] = filter->start[i % GROUPS];
  }
  const size_t columns = (outputs - 1) * step + kernel;
  for (size_t c = 0; c < columns; c++) {
    // GCC 12 does not see that pairs are set before they are read.
    struct pair x[MAX_LARGE_PAIRS] = {0};
    UNROLL_8 for (size_t i = 0; i < PAIRS(kernel); i++) {
      const bool is_alone = 2 * i + 1 == kernel;
      const __m128i second = is_alone ? _mm_setzero_si128() : load_bytes(input[2 * i + 1] + channel, channels);
      x[i] = pair_of(kind, load_bytes(input[2 * i] + channel, channels), is_alone ? NULL : &second);
    }
    UNROLL_8 for (size_t pixel = 0; pixel < PIXELS; pixel++) {
      // Beyond the kernel for outputs that do not read this column.
      const size_t column = c - pixel * step;
      if (column < kernel && pixel < outputs) {
        UNROLL_8 for (size_t i = 0; i < PAIRS(kernel); i++) {
          UNROLL for (size_t group = 0; group < GROUPS; group++) {
            vint* sum = &sums[pixel * GROUPS + group];
            *sum = VINT(add_epi32, *sum, VINT(madd_epi16, x[i].of[group], filter->columns[column][i].of[group]));
          }
        }
      }
    }
    input += kernel;
  }
}

// Computes LANES channels of some outputs, or fewer, whose inputs are at `input`.
static XNN_INLINE void sweep_large(
    enum kind kind, size_t kernel, size_t step, const struct row* row, size_t outputs, const int8_t* const* input,
    const struct large_filter* filter, size_t channel, size_t channels, uint8_t* output)
{
  while (outputs > 0) {
    const size_t some = min(outputs, step == 0 ? 1 : PIXELS);
    vint sums[PIXELS * GROUPS];
    sum_outputs(kind, kernel, step, some, input, filter, channel, channels, sums);
    UNROLL_8 for (size_t pixel = 0; pixel < PIXELS; pixel += OUTPUTS) {
      if (pixel < some) {
        store_integers(
            kind, row, sums + pixel * GROUPS, filter->scale, min(some - pixel, OUTPUTS), output + pixel * row->output_stride,
            channels);
      }
    }
    input = (const int8_t* const*) ((uintptr_t) input + some * row->input_stride);
    output += some * row->output_stride;
    outputs -= some;
  }
}

// Computes a row of outputs. `step` is 0 if outputs share no columns.
static XNN_INLINE void depthwise_large(
    enum kind kind, size_t kernel, struct row row, size_t output_width, const void* weights, size_t channels)
{
  const size_t taps = kernel * kernel;
  const size_t block = DEPTHWISE_LANES * (sizeof(int32_t) + taps + (kind == UNSIGNED ? 0 : sizeof(float)));
  const size_t column = kernel * sizeof(void*);
  const size_t step = row.input_stride % column == 0 ? row.input_stride / column : 0;
  const size_t apart = row.input_stride / sizeof(void*);
  while (output_width > 0) {
    const size_t outputs = min(output_width, 1 + (MAX_ADDRESSES - taps) / apart);
    const float* input[ADDRESSES(MAX_ADDRESSES)];
    settle_addresses(
        (const float* const*) row.input, (outputs - 1) * apart + taps, (const float*) row.zero, row.input_offset, input);
    for (size_t channel = 0; channel < channels; channel += LANES) {
      struct large_filter filter;
      load_large_filter(
          kind, kernel, row.weights_zero_point, (const int8_t*) weights + channel / DEPTHWISE_LANES * block,
          channel % DEPTHWISE_LANES, &filter);
      sweep_large(
          kind, kernel, step, &row, outputs, (const int8_t* const*) input, &filter, channel, min(channels - channel, LANES),
          (uint8_t*) row.output + channel);
    }
    row.input = (const int8_t**) ((uintptr_t) row.input + outputs * row.input_stride);
    row.output = (uint8_t*) row.output + outputs * row.output_stride;
    output_width -= outputs;
  }
}

// Kernels of 7x7, the most common, have instructions of their own, and all others share theirs.
#define LARGE_OF(name, kind) \
  static __attribute__((noinline)) void name( \
      size_t kernel, struct row row, size_t output_width, const void* weights, size_t channels) \
  { \
    if (kernel == 7) { \
      depthwise_large(kind, 7, row, output_width, weights, channels); \
    } else { \
      depthwise_large(kind, kernel, row, output_width, weights, channels); \
    } \
  }

LARGE_OF(signed_large, SIGNED)
LARGE_OF(unsigned_large, UNSIGNED)

#define LARGE_MICROKERNELS(taps, kernel) \
  QS8_DEPTHWISE(WITH_ISA(xnnpack_sys_qs8_dwconv_minmax_ukernel_##taps##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    signed_large(kernel, SIGNED_ROW, output_width, weights, channels); \
  } \
  QU8_DEPTHWISE(WITH_ISA(xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    unsigned_large(kernel, UNSIGNED_ROW, output_width, weights, channels); \
  }

LARGE_MICROKERNELS(49, 7)
LARGE_MICROKERNELS(81, 9)
LARGE_MICROKERNELS(121, 11)
LARGE_MICROKERNELS(169, 13)
LARGE_MICROKERNELS(225, 15)
