// Depthwise convolutions of 8-bit integers, see `depthwise.h`: included by a file for each instruction set, which defines `ISA`. `kind`,
// `kernel` and `step` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become
// registers.
//
// Two rows of a column of inputs are interleaved and widened, so that one instruction multiplies both by their weights and adds the
// products, for eight channels with AVX2 and 16 with AVX512. XNNPACK widens each input to 32 bits for every output. Zero points are
// subtracted from unsigned weights when they are widened.

#include <assert.h>
#include <string.h>

#include <immintrin.h>

#include "ukernels/depthwise.h"
#include "ukernels/few_bytes.h"
#include "ukernels/q8.h"
#include "ukernels/with_isa.h"

// Two vectors of sums are converted to bytes together: two outputs, or with vectors of 128 bits two groups of neighbouring channels of
// one output, which share the addresses and loads of inputs.
#ifdef __AVX2__
enum { OUTPUTS = 2, GROUPS = 1 };
#else
enum { OUTPUTS = 1, GROUPS = 2 };
#endif
#define LANES (GROUPS * VECTOR_LANES)
#define MAX_KERNEL 5
// Vectors of a column: two rows each, the last one may be alone.
#define MAX_PAIRS 3
#define PAIRS(kernel) (((kernel) + 1) / 2)
#define UNROLL _Pragma("GCC unroll 5")

struct column {
  vint pairs[GROUPS][MAX_PAIRS];
};

struct row {
  const int8_t** input;
  intptr_t input_stride;
  void* output;
  // Bytes from one output to the next, and of an element.
  size_t output_stride;
  size_t output_size;
  // Added to addresses of inputs other than `zero`.
  size_t input_offset;
  const int8_t* zero;
  struct requantization to;
  // UNSIGNED: the weights' zero point.
  int16_t weights_zero_point;
  // DYNAMIC: the zero point, the scale, and bounds of the output.
  int8_t padding;
  vfloat scale;
  vfloat min;
  vfloat max;
};

// Operands of a row of outputs, for LANES channels.
struct filter {
  struct column columns[MAX_KERNEL];
  // Initial values of sums.
  vint start[GROUPS];
  vfloat scale[GROUPS];
  // DYNAMIC.
  vfloat bias[GROUPS];
};

#ifdef __AVX512BW__
static XNN_INLINE __mmask16 lanes_of(size_t channels) { return (__mmask16) (ALL_LANES >> (LANES - channels)); }
#endif

// Loads a byte for each lane, of which the first `channels` exist.
static XNN_INLINE __m128i load_bytes(const int8_t* from, size_t channels) {
#ifdef __AVX512BW__
  return channels >= LANES ? _mm_loadu_si128((const __m128i*) from) : _mm_maskz_loadu_epi8(lanes_of(channels), from);
#else
  if XNN_LIKELY(channels >= LANES) {
    return _mm_loadl_epi64((const __m128i*) from);
  }
  return _mm_cvtsi64_si128((int64_t) load_up_to_8(from, channels));
#endif
}

// Two rows, the bytes of a group in turn, widened to 16 bits.
static XNN_INLINE vint interleave(enum kind kind, __m128i a, __m128i b, size_t group) {
#ifdef __AVX512BW__
  const __m256i both = _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b));
#else
  __m128i both = _mm_unpacklo_epi8(a, b);
  both = group == 0 ? both : _mm_srli_si128(both, 2 * VECTOR_LANES);
#endif
  return kind == UNSIGNED ? VINT(cvtepu8_epi16, both) : VINT(cvtepi8_epi16, both);
}

// The bytes of a group in one row, widened to 32 bits.
static XNN_INLINE vint widen_row(enum kind kind, __m128i row, size_t group) {
  row = group == 0 ? row : _mm_srli_si128(row, VECTOR_LANES);
  return kind == UNSIGNED ? VINT(cvtepu8_epi32, row) : VINT(cvtepi8_epi32, row);
}

static XNN_INLINE struct column widen(enum kind kind, size_t kernel, const __m128i rows[MAX_KERNEL]) {
  struct column column;
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    UNROLL for (size_t i = 0; i < PAIRS(kernel); i++) {
      // The upper half of each lane of a row alone is multiplied by 0.
      column.pairs[group][i] = 2 * i + 1 == kernel ? widen_row(kind, rows[2 * i], group)
                                                   : interleave(kind, rows[2 * i], rows[2 * i + 1], group);
    }
  }
  return column;
}

static XNN_INLINE struct column load_column(
    enum kind kind, size_t kernel, const struct row* row, const int8_t** input, size_t channel, size_t channels)
{
  __m128i rows[MAX_KERNEL];
  UNROLL for (size_t y = 0; y < kernel; y++) {
    if (kind == DYNAMIC && input[y] == row->zero) {
      rows[y] = _mm_set1_epi8(row->padding);
    } else {
      rows[y] = load_bytes((const int8_t*) input_at(input[y], row->zero, row->input_offset) + channel, channels);
    }
  }
  return widen(kind, kernel, rows);
}

static XNN_INLINE struct column load_weights(enum kind kind, size_t kernel, const int8_t* weights, int16_t zero_point) {
  __m128i rows[MAX_KERNEL];
  UNROLL for (size_t y = 0; y < kernel; y++) {
    rows[y] = load_bytes(weights + DEPTHWISE_LANES * y, LANES);
  }
  struct column column = widen(kind, kernel, rows);
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    vint* pairs = column.pairs[group];
    UNROLL for (size_t i = 0; i < PAIRS(kernel); i++) {
      if (kind == UNSIGNED) {
        pairs[i] = VINT(sub_epi16, pairs[i], VINT(set1_epi16, zero_point));
      }
      if (2 * i + 1 == kernel) {
        pairs[i] = VINT_BITS(and, pairs[i], VINT(set1_epi32, 0xFFFF));
      }
    }
  }
  return column;
}

static XNN_INLINE vint add_products(size_t kernel, vint sum, const vint* a, const vint* b) {
  UNROLL for (size_t i = 0; i < PAIRS(kernel); i++) {
    sum = VINT(add_epi32, sum, VINT(madd_epi16, a[i], b[i]));
  }
  return sum;
}

// `weights` are those of 16 channels, from the one of `first` on.
static XNN_INLINE struct filter load_filter(
    enum kind kind, size_t kernel, const struct row* row, const void* weights, size_t first)
{
  const int32_t* biases = weights;
  const int8_t* const bytes = (const int8_t*) (biases + DEPTHWISE_LANES);
  const float* scales = (const float*) (bytes + DEPTHWISE_LANES * kernel * kernel);
  struct filter filter;
  UNROLL for (size_t i = 0; i < kernel; i++) {
    filter.columns[i] =
        load_weights(kind, kernel, bytes + DEPTHWISE_LANES * kernel * i + first, row->weights_zero_point);
  }
  // One in each word.
  vint zero_points[MAX_PAIRS];
  UNROLL for (size_t i = 0; i < PAIRS(kernel); i++) {
    zero_points[i] = VINT(set1_epi16, (int16_t) -row->padding);
  }
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    const size_t from = first + group * VECTOR_LANES;
    filter.start[group] = kind == DYNAMIC ? vint_zero() : vint_load(biases + from);
    filter.bias[group] = VINT(loadu_ps, (const float*) biases + from);
    filter.scale[group] = kind == UNSIGNED ? VINT(setzero_ps) : VINT(loadu_ps, scales + from);
    if (kind == DYNAMIC) {
      UNROLL for (size_t i = 0; i < kernel; i++) {
        filter.start[group] = add_products(kernel, filter.start[group], zero_points, filter.columns[i].pairs[group]);
      }
      filter.scale[group] = VINT(mul_ps, filter.scale[group], row->scale);
    }
  }
  return filter;
}

// Computes the sums of one output. The first columns of `x` are those that it shares with the output before, and afterwards those
// that it shares with the next: each input is loaded once.
static XNN_INLINE void sum_output(
    enum kind kind, size_t kernel, size_t step, const struct row* row, const struct filter* filter,
    const int8_t** input, size_t channel, size_t channels, struct column x[MAX_KERNEL], vint sums[GROUPS])
{
  const size_t shared = kernel - step;
  UNROLL for (size_t i = shared; i < kernel; i++) {
    x[i] = load_column(kind, kernel, row, input + i * kernel, channel, channels);
  }
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    sums[group] = filter->start[group];
    UNROLL for (size_t i = 0; i < kernel; i++) {
      sums[group] = add_products(kernel, sums[group], x[i].pairs[group], filter->columns[i].pairs[group]);
    }
  }
  UNROLL for (size_t i = 0; i < shared; i++) {
    x[i] = x[i + step];
  }
}

#ifndef __AVX512BW__
static XNN_INLINE void store_bytes(uint8_t* to, __m128i bytes, size_t channels) {
  if XNN_LIKELY(channels >= LANES) {
    _mm_storel_epi64((__m128i*) to, bytes);
  } else {
    store_up_to_8(to, (uint64_t) _mm_cvtsi128_si64(bytes), channels);
  }
}
#endif

// Stores the integers of one output or of two.
static XNN_INLINE void store_integers(
    enum kind kind, const struct row* row, const vint sums[2], const vfloat scale[GROUPS], size_t outputs, uint8_t* output,
    size_t channels)
{
#ifdef __AVX512BW__
  UNROLL for (size_t i = 0; i < 2; i++) {
    if (i < outputs) {
      requantize(kind, &row->to, sums[i], *scale, output + i * row->output_stride, lanes_of(channels));
    }
  }
#else
  const vfloat scales[2] = {scale[0], scale[GROUPS - 1]};
  const __m128i bytes = requantize_row(kind, &row->to, sums, scales);
  store_bytes(output, bytes, channels);
  if (outputs > 1) {
    store_bytes(output + row->output_stride, _mm_srli_si128(bytes, LANES), channels);
  }
#endif
}

// DYNAMIC: scaled in the order of TFLite's reference kernels, on which the last bits depend.
static XNN_INLINE void store_floats(
    const struct row* row, const vint sums[GROUPS], const struct filter* filter, void* output, size_t channels)
{
  float some[LANES];
  float* to = channels >= LANES ? output : some;
  UNROLL for (size_t group = 0; group < GROUPS; group++) {
    const vfloat product = VINT(mul_ps, VINT(cvtepi32_ps, sums[group]), filter->scale[group]);
    const vfloat sum = VINT(add_ps, product, filter->bias[group]);
    VINT(storeu_ps, to + group * VECTOR_LANES, vfloat_clamp(sum, row->min, row->max));
  }
  if XNN_UNLIKELY(channels < LANES) {
    memcpy(output, some, channels * sizeof(float));
  }
}

// Computes LANES channels of a whole row, or fewer.
static XNN_INLINE void sweep(
    enum kind kind, size_t kernel, size_t step, const struct row* row, size_t output_width, const void* weights,
    size_t first, size_t channel, size_t channels)
{
  const struct filter filter = load_filter(kind, kernel, row, weights, first);
  const int8_t** input = row->input;
  uint8_t* output = (uint8_t*) row->output + channel * row->output_size;
  struct column x[MAX_KERNEL];
  UNROLL for (size_t i = 0; i < kernel - step; i++) {
    x[i] = load_column(kind, kernel, row, input + i * kernel, channel, channels);
  }
  while (output_width > 0) {
    const size_t outputs = output_width > 1 ? OUTPUTS : 1;
    vint sums[2];
    UNROLL for (size_t i = 0; i < OUTPUTS; i++) {
      if (i < outputs) {
        sum_output(kind, kernel, step, row, &filter, input, channel, channels, x, sums + i * GROUPS);
        input = (const int8_t**) ((uintptr_t) input + row->input_stride);
      } else {
        sums[i] = sums[0];
      }
    }
    if (kind == DYNAMIC) {
      UNROLL for (size_t i = 0; i < OUTPUTS; i++) {
        if (i < outputs) {
          store_floats(row, sums + i * GROUPS, &filter, output + i * row->output_stride, channels);
        }
      }
    } else {
      store_integers(kind, row, sums, filter.scale, outputs, output, channels);
    }
    output += outputs * row->output_stride;
    output_width -= outputs;
  }
}

static XNN_INLINE void sweep_channels(
    enum kind kind, size_t kernel, size_t step, const struct row* row, size_t output_width, const void* weights,
    size_t channels)
{
  const size_t block = DEPTHWISE_LANES * (sizeof(int32_t) + kernel * kernel + (kind == UNSIGNED ? 0 : sizeof(float)));
  size_t first = 0;
  for (size_t channel = 0; channel < channels; channel += LANES) {
    const size_t rest = channels - channel;
    if XNN_LIKELY(rest >= LANES) {
      sweep(kind, kernel, step, row, output_width, weights, first, channel, LANES);
    } else {
      sweep(kind, kernel, step, row, output_width, weights, first, channel, rest);
    }
    first = (first + LANES) % DEPTHWISE_LANES;
    weights = first == 0 ? (const int8_t*) weights + block : weights;
  }
}

static XNN_INLINE void depthwise(
    enum kind kind, size_t kernel, struct row row, size_t output_width, const void* weights, size_t channels)
{
  const intptr_t column = kernel * sizeof(void*);
  if (row.input_stride == column) {
    sweep_channels(kind, kernel, 1, &row, output_width, weights, channels);
  } else if (row.input_stride == 2 * column) {
    sweep_channels(kind, kernel, 2, &row, output_width, weights, channels);
  } else {
    sweep_channels(kind, kernel, kernel, &row, output_width, weights, channels);
  }
}

#define ROW \
  .input = (const int8_t**) input, .input_stride = input_stride, .output = output, .output_size = sizeof(*output), \
  .output_stride = channels * sizeof(*output) + output_increment, .input_offset = input_offset, \
  .zero = (const int8_t*) zero

#define SIGNED_ROW ((struct row) {ROW, .to = signed_requantization(params)})
#define UNSIGNED_ROW \
  ((struct row) { \
      ROW, .to = unsigned_requantization(params), .weights_zero_point = params->rndnu_scalar.kernel_zero_point})
#define DYNAMIC_ROW \
  ((struct row) { \
      ROW, .padding = (int8_t) params->zero_point, .scale = VINT(set1_ps, params->scale), \
      .min = VINT(set1_ps, params->min), .max = VINT(set1_ps, params->max)})

#define MICROKERNELS(taps, kernel) \
  QS8_DEPTHWISE(WITH_ISA(xnnpack_sys_qs8_dwconv_minmax_ukernel_##taps##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    depthwise(SIGNED, kernel, SIGNED_ROW, output_width, weights, channels); \
  } \
  QU8_DEPTHWISE(WITH_ISA(xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    depthwise(UNSIGNED, kernel, UNSIGNED_ROW, output_width, weights, channels); \
  } \
  QD8_DEPTHWISE(WITH_ISA(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_##taps##p16c__)) { \
    assert(channels != 0 && output_width != 0); \
    depthwise(DYNAMIC, kernel, DYNAMIC_ROW, output_width, weights, channels); \
  }

MICROKERNELS(9, 3)
MICROKERNELS(25, 5)

#include "ukernels/depthwise_large_q8_x86.h"
