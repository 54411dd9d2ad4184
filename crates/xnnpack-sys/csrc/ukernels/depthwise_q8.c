// Depthwise convolutions of 8-bit integers, see `depthwise.h`. `kind`, `kernel` and `step` are constants wherever
// these functions are inlined, so that loops over them are unrolled and arrays become registers.
//
// A column of inputs is interleaved so that one instruction multiplies four of its rows by their weights and adds the products,
// for 16 channels. It takes unsigned inputs and signed weights:
// - signed inputs get 128 added, which the bias compensates;
// - 128 is subtracted from unsigned weights. The difference of the weights' zero point from 128 is multiplied by the sum of the
//   inputs.
// Sums are of integers, so that any order gives the same result. Sums of inputs quantized at run time become floats.

#include <immintrin.h>

#include "ukernels/depthwise.h"
#include "ukernels/q8.h"

#define LANES DEPTHWISE_LANES
#define MAX_KERNEL 5
// Rows of a column that one instruction multiplies.
#define DOT_ROWS 4
#define UNROLL _Pragma("GCC unroll 5")

// One byte of each of up to five rows, for 16 channels: four rows interleaved, and the fifth, if there is one, as the first of four.
struct column {
  __m512i rows;
  __m512i fifth;
  // UNSIGNED: the sum of all rows.
  __m512i total;
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
  // Permutation that interleaves the bytes of a column.
  __m512i order;
  struct requantization to;
  // UNSIGNED: 128 minus the weights' zero point.
  __m512i weights_offset;
  // DYNAMIC: the zero point, for each byte and with 128 added, the scale, and bounds of the output.
  __m128i padding;
  __m512i zero_point;
  __m512 scale;
  __m512 min;
  __m512 max;
};

static XNN_INLINE struct column interleave(size_t kernel, const __m128i rows[MAX_KERNEL], __m512i order) {
  // A missing fourth row is multiplied by 0.
  __m512i all = _mm512_castsi128_si512(rows[0]);
  all = _mm512_inserti32x4(all, rows[1], 1);
  all = _mm512_inserti32x4(all, rows[2], 2);
  struct column column = {all, all, all};
  if (kernel > DOT_ROWS) {
    all = _mm512_inserti32x4(all, rows[3], 3);
    column.fifth = _mm512_cvtepu8_epi32(rows[4]);
  }
  column.rows = _mm512_permutexvar_epi8(order, all);
  return column;
}

// 1 in each byte that has an input, 0 in the others.
static XNN_INLINE struct column ones(size_t kernel) {
  const int32_t rows = kernel < DOT_ROWS ? 0x00010101 : 0x01010101;
  return (struct column) {.rows = _mm512_set1_epi32(rows), .fifth = _mm512_set1_epi32(1)};
}

static XNN_INLINE struct column load_weights(enum kind kind, size_t kernel, const int8_t* weights, __m512i order) {
  __m128i rows[MAX_KERNEL];
  UNROLL for (size_t y = 0; y < kernel; y++) {
    rows[y] = _mm_loadu_si128((const __m128i*) (weights + LANES * y));
  }
  struct column column = interleave(kernel, rows, order);
  if (kind == UNSIGNED) {
    column.rows = _mm512_xor_si512(column.rows, _mm512_set1_epi8((int8_t) OFFSET));
    column.fifth = _mm512_xor_si512(column.fifth, _mm512_set1_epi32(OFFSET));
  }
  if (kernel < DOT_ROWS) {
    column.rows = _mm512_and_si512(column.rows, _mm512_set1_epi32(0x00FFFFFF));
  }
  return column;
}

static XNN_INLINE __m512i dot(size_t kernel, __m512i sum, struct column unsigned_bytes, struct column weights) {
  sum = _mm512_dpbusd_epi32(sum, unsigned_bytes.rows, weights.rows);
  return kernel > DOT_ROWS ? _mm512_dpbusd_epi32(sum, unsigned_bytes.fifth, weights.fifth) : sum;
}

static XNN_INLINE struct column load_column(
    enum kind kind, size_t kernel, const struct row* row, const int8_t** input, size_t channel, __mmask16 lanes)
{
  __m128i rows[MAX_KERNEL];
  UNROLL for (size_t y = 0; y < kernel; y++) {
    if (kind == DYNAMIC && input[y] == row->zero) {
      rows[y] = row->padding;
      continue;
    }
    const int8_t* from = (const int8_t*) input_at(input[y], row->zero, row->input_offset) + channel;
    rows[y] = lanes == ALL_LANES ? _mm_loadu_si128((const __m128i*) from) : _mm_maskz_loadu_epi8(lanes, from);
  }
  struct column column = interleave(kernel, rows, row->order);
  if (kind == UNSIGNED) {
    column.total = dot(kernel, _mm512_setzero_si512(), column, ones(kernel));
  } else {
    column.rows = _mm512_xor_si512(column.rows, _mm512_set1_epi8((int8_t) OFFSET));
    column.fifth = _mm512_xor_si512(column.fifth, _mm512_set1_epi8((int8_t) OFFSET));
  }
  return column;
}

// DYNAMIC: stores 16 sums, or those of `lanes`, scaled in the order of TFLite's reference kernels, on which the last bits depend.
static XNN_INLINE void store_floats(
    const struct row* row, __m512i sums, __m512 scale, __m512 bias, void* output, __mmask16 lanes)
{
  const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scale);
  const __m512 sum = _mm512_add_ps(product, bias);
  _mm512_mask_storeu_ps(output, lanes, clamp(sum, row->min, row->max));
}

// Operands of a row of outputs, for some channels.
struct filter {
  struct column columns[MAX_KERNEL];
  // Initial values of sums.
  __m512i start;
  __m512 scale;
  // DYNAMIC.
  __m512 bias;
};

static XNN_INLINE struct filter load_filter(enum kind kind, size_t kernel, const struct row* row, const void* weights) {
  const int8_t* const bytes = (const int8_t*) weights + LANES * sizeof(int32_t);
  const struct column offset = {.rows = _mm512_set1_epi8((int8_t) OFFSET), .fifth = _mm512_set1_epi8((int8_t) OFFSET)};
  struct filter filter = {
      .start = kind == DYNAMIC ? _mm512_setzero_si512() : _mm512_loadu_si512(weights), .bias = _mm512_loadu_ps(weights)};
  UNROLL for (size_t i = 0; i < kernel; i++) {
    filter.columns[i] = load_weights(kind, kernel, bytes + LANES * kernel * i, row->order);
    if (kind == SIGNED) {
      const __m512i products = dot(kernel, _mm512_setzero_si512(), offset, filter.columns[i]);
      filter.start = _mm512_sub_epi32(filter.start, products);
    } else if (kind == DYNAMIC) {
      filter.start = dot(kernel, filter.start, ones(kernel), filter.columns[i]);
    }
  }
  filter.scale = kind == UNSIGNED ? _mm512_undefined_ps() : _mm512_loadu_ps(bytes + LANES * kernel * kernel);
  if (kind == DYNAMIC) {
    filter.start = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_mullo_epi32(filter.start, row->zero_point));
    filter.scale = _mm512_mul_ps(filter.scale, row->scale);
  }
  return filter;
}

// Computes the sums of one output. The first columns of `x` are those that it shares with the output before, and afterwards those
// that it shares with the next: each input is loaded once.
static XNN_INLINE __m512i sum_of_output(
    enum kind kind, size_t kernel, size_t step, const struct row* row, const struct filter* filter,
    const int8_t** input, size_t channel, __mmask16 lanes, struct column x[MAX_KERNEL])
{
  const size_t shared = kernel - step;
  UNROLL for (size_t i = shared; i < kernel; i++) {
    x[i] = load_column(kind, kernel, row, input + i * kernel, channel, lanes);
  }
  __m512i sum = filter->start;
  UNROLL for (size_t i = 0; i < kernel; i++) {
    sum = dot(kernel, sum, x[i], filter->columns[i]);
  }
  if (kind == UNSIGNED) {
    __m512i total = x[0].total;
    UNROLL for (size_t i = 1; i < kernel; i++) {
      total = _mm512_add_epi32(total, x[i].total);
    }
    sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(total, row->weights_offset));
  }
  UNROLL for (size_t i = 0; i < shared; i++) {
    x[i] = x[i + step];
  }
  return sum;
}

// Stores four outputs.
static XNN_INLINE void store_four(
    enum kind kind, const struct row* row, const __m512i sums[4], __m512 scale, uint8_t* output, __mmask16 lanes)
{
  const __m512 scales[2] = {scale, scale};
  const __m512i bytes = requantize_two(kind, &row->to, sums, sums + 2, scales);
  const __m128i outputs[4] = {
      _mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1), _mm512_extracti32x4_epi32(bytes, 2),
      _mm512_extracti32x4_epi32(bytes, 3)};
  UNROLL for (size_t i = 0; i < 4; i++) {
    uint8_t* at = output + i * row->output_stride;
    if (lanes == ALL_LANES) {
      _mm_storeu_si128((__m128i*) at, outputs[i]);
    } else {
      _mm_mask_storeu_epi8(at, lanes, outputs[i]);
    }
  }
}

// Computes some channels of a whole row.
static XNN_INLINE void sweep(
    enum kind kind, size_t kernel, size_t step, const struct row* row, size_t output_width, const void* weights,
    size_t channel, __mmask16 lanes)
{
  const struct filter filter = load_filter(kind, kernel, row, weights);
  const int8_t** input = row->input;
  uint8_t* output = (uint8_t*) row->output + channel * row->output_size;
  struct column x[MAX_KERNEL];
  UNROLL for (size_t i = 0; i < kernel - step; i++) {
    x[i] = load_column(kind, kernel, row, input + i * kernel, channel, lanes);
  }
  for (; kind != DYNAMIC && output_width >= 4; output_width -= 4) {
    __m512i sums[4];
    UNROLL for (size_t i = 0; i < 4; i++) {
      sums[i] = sum_of_output(kind, kernel, step, row, &filter, input, channel, lanes, x);
      input = (const int8_t**) ((uintptr_t) input + row->input_stride);
    }
    store_four(kind, row, sums, filter.scale, output, lanes);
    output += 4 * row->output_stride;
  }
  for (; output_width > 0; output_width--) {
    const __m512i sum = sum_of_output(kind, kernel, step, row, &filter, input, channel, lanes, x);
    if (kind == DYNAMIC) {
      store_floats(row, sum, filter.scale, filter.bias, output, lanes);
    } else {
      requantize(kind, &row->to, sum, filter.scale, output, lanes);
    }
    input = (const int8_t**) ((uintptr_t) input + row->input_stride);
    output += row->output_stride;
  }
}

static XNN_INLINE void sweep_channels(
    enum kind kind, size_t kernel, size_t step, const struct row* row, size_t output_width, const void* weights,
    size_t channels)
{
  const size_t block = LANES * (sizeof(int32_t) + kernel * kernel + (kind == UNSIGNED ? 0 : sizeof(float)));
  size_t channel = 0;
  for (; channels - channel >= LANES; channel += LANES) {
    sweep(kind, kernel, step, row, output_width, weights, channel, ALL_LANES);
    weights = (const int8_t*) weights + block;
  }
  if (channel != channels) {
    sweep(kind, kernel, step, row, output_width, weights, channel, (1 << (channels - channel)) - 1);
  }
}

static XNN_INLINE void depthwise(
    enum kind kind, size_t kernel, struct row row, size_t output_width, const void* weights, size_t channels)
{
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  row.order =
      _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(0x30201000));
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
      ROW, .to = unsigned_requantization(params), \
      .weights_offset = _mm512_set1_epi32(OFFSET - params->rndnu_scalar.kernel_zero_point)})

QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_9p16c__avx512vnni) {
  assert(channels != 0 && output_width != 0);
  depthwise(SIGNED, 3, SIGNED_ROW, output_width, weights, channels);
}

QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_25p16c__avx512vnni) {
  assert(channels != 0 && output_width != 0);
  depthwise(SIGNED, 5, SIGNED_ROW, output_width, weights, channels);
}

QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_9p16c__avx512vnni) {
  assert(channels != 0 && output_width != 0);
  depthwise(UNSIGNED, 3, UNSIGNED_ROW, output_width, weights, channels);
}

QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_25p16c__avx512vnni) {
  assert(channels != 0 && output_width != 0);
  depthwise(UNSIGNED, 5, UNSIGNED_ROW, output_width, weights, channels);
}

#define DYNAMIC_ROW \
  ((struct row) { \
      ROW, .padding = _mm_set1_epi8((int8_t) params->zero_point), \
      .zero_point = _mm512_set1_epi32(params->zero_point + OFFSET), .scale = _mm512_set1_ps(params->scale), \
      .min = _mm512_set1_ps(params->min), .max = _mm512_set1_ps(params->max)})

QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__avx512vnni) {
  assert(channels != 0 && output_width != 0);
  depthwise(DYNAMIC, 3, DYNAMIC_ROW, output_width, weights, channels);
}

QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__avx512vnni) {
  assert(channels != 0 && output_width != 0);
  depthwise(DYNAMIC, 5, DYNAMIC_ROW, output_width, weights, channels);
}
