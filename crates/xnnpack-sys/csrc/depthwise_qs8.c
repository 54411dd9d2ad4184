// Depthwise convolutions of 8-bit integers, see `depthwise.h`. `kernel` and `step` are constants wherever
// these functions are inlined, so that loops over them are unrolled and arrays become registers.
//
// A column of inputs is interleaved so that one instruction multiplies four of its rows with their weights
// and adds them up, for 16 channels. It wants unsigned inputs: they are taken with 128 added, which the bias
// takes off again. Sums are of integers and so the same in any order.

#include <immintrin.h>

#include "depthwise.h"
#include "xnnpack/common.h"

#define LANES DEPTHWISE_LANES
#define ALL_LANES 0xFFFF
#define MAX_KERNEL 5
#define OFFSET 128
// Rows of a column that meet their weights at once.
#define DOT_ROWS 4
#define UNROLL _Pragma("GCC unroll 5")

// One byte of each of up to five rows, for 16 channels: four of them in turn, then, for kernels with as
// many rows, the fifth as the first of four.
struct column {
  __m512i rows;
  __m512i fifth;
};

struct row {
  const int8_t** input;
  intptr_t input_stride;
  int8_t* output;
  size_t output_stride;
  // What to add to the address of an input other than `zero`.
  size_t input_offset;
  const int8_t* zero;
  // Where the bytes of an interleaved column are before.
  __m512i order;
  __m512 min_less_zero_point;
  __m512 max_less_zero_point;
  __m512i zero_point;
};

static XNN_INLINE struct column interleave(size_t kernel, const __m128i rows[MAX_KERNEL], __m512i order) {
  // A fourth row that is not there is multiplied by zero.
  __m512i all = _mm512_castsi128_si512(rows[0]);
  all = _mm512_inserti32x4(all, rows[1], 1);
  all = _mm512_inserti32x4(all, rows[2], 2);
  struct column column = {all, all};
  if (kernel > DOT_ROWS) {
    all = _mm512_inserti32x4(all, rows[3], 3);
    column.fifth = _mm512_cvtepu8_epi32(rows[4]);
  }
  column.rows = _mm512_permutexvar_epi8(order, all);
  return column;
}

static XNN_INLINE struct column load_column(
    size_t kernel, const struct row* row, const int8_t** input, size_t channel, __mmask16 lanes)
{
  __m128i rows[MAX_KERNEL];
  UNROLL for (size_t y = 0; y < kernel; y++) {
    const int8_t* from = input[y];
    if XNN_UNPREDICTABLE(from != row->zero) {
      from += row->input_offset;
    }
    from += channel;
    rows[y] = lanes == ALL_LANES ? _mm_loadu_si128((const __m128i*) from) : _mm_maskz_loadu_epi8(lanes, from);
  }
  struct column column = interleave(kernel, rows, row->order);
  const __m512i offset = _mm512_set1_epi8((int8_t) OFFSET);
  column.rows = _mm512_xor_si512(column.rows, offset);
  column.fifth = _mm512_xor_si512(column.fifth, offset);
  return column;
}

static XNN_INLINE struct column load_weights(size_t kernel, const int8_t* weights, __m512i order) {
  __m128i rows[MAX_KERNEL];
  UNROLL for (size_t y = 0; y < kernel; y++) {
    rows[y] = _mm_loadu_si128((const __m128i*) (weights + LANES * y));
  }
  struct column column = interleave(kernel, rows, order);
  if (kernel < DOT_ROWS) {
    column.rows = _mm512_and_si512(column.rows, _mm512_set1_epi32(0x00FFFFFF));
  }
  return column;
}

static XNN_INLINE __m512i dot(size_t kernel, __m512i sum, struct column unsigned_bytes, struct column weights) {
  sum = _mm512_dpbusd_epi32(sum, unsigned_bytes.rows, weights.rows);
  return kernel > DOT_ROWS ? _mm512_dpbusd_epi32(sum, unsigned_bytes.fifth, weights.fifth) : sum;
}

// What XNNPACK's microkernels do to a sum, in the same order of floating point operations.
static XNN_INLINE __m128i requantize(const struct row* row, __m512i sum, __m512 scale) {
  __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
  scaled = _mm512_min_ps(_mm512_max_ps(scaled, row->min_less_zero_point), row->max_less_zero_point);
  return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(scaled), row->zero_point));
}

// Some channels of a whole row. Columns move on from pixel to pixel: each input is loaded once.
static XNN_INLINE void sweep(
    size_t kernel, size_t step, const struct row* row, size_t output_width, const void* weights, size_t channel,
    __mmask16 lanes)
{
  const int8_t* const bytes = (const int8_t*) weights + LANES * sizeof(int32_t);
  const struct column offset = {_mm512_set1_epi8((int8_t) OFFSET), _mm512_set1_epi8((int8_t) OFFSET)};
  struct column k[MAX_KERNEL];
  __m512i bias = _mm512_loadu_si512(weights);
  UNROLL for (size_t i = 0; i < kernel; i++) {
    k[i] = load_weights(kernel, bytes + LANES * kernel * i, row->order);
    bias = _mm512_sub_epi32(bias, dot(kernel, _mm512_setzero_si512(), offset, k[i]));
  }
  const __m512 scale = _mm512_loadu_ps(bytes + LANES * kernel * kernel);

  const size_t shared = kernel - step;
  const int8_t** input = row->input;
  int8_t* output = row->output + channel;
  struct column x[MAX_KERNEL];
  UNROLL for (size_t i = 0; i < shared; i++) {
    x[i] = load_column(kernel, row, input + i * kernel, channel, lanes);
  }
  do {
    UNROLL for (size_t i = shared; i < kernel; i++) {
      x[i] = load_column(kernel, row, input + i * kernel, channel, lanes);
    }
    __m512i sum = bias;
    UNROLL for (size_t i = 0; i < kernel; i++) {
      sum = dot(kernel, sum, x[i], k[i]);
    }
    const __m128i result = requantize(row, sum, scale);
    if (lanes == ALL_LANES) {
      _mm_storeu_si128((__m128i*) output, result);
    } else {
      _mm_mask_storeu_epi8(output, lanes, result);
    }
    UNROLL for (size_t i = 0; i < shared; i++) {
      x[i] = x[i + step];
    }
    input = (const int8_t**) ((uintptr_t) input + row->input_stride);
    output += row->output_stride;
  } while (--output_width != 0);
}

static XNN_INLINE void sweep_channels(
    size_t kernel, size_t step, const struct row* row, size_t output_width, const void* weights, size_t channels)
{
  size_t channel = 0;
  for (; channels - channel >= LANES; channel += LANES) {
    sweep(kernel, step, row, output_width, weights, channel, ALL_LANES);
    weights = (const int8_t*) weights + LANES * (sizeof(int32_t) + kernel * kernel + sizeof(float));
  }
  if (channel != channels) {
    sweep(kernel, step, row, output_width, weights, channel, (1 << (channels - channel)) - 1);
  }
}

static XNN_INLINE void depthwise(
    size_t kernel, size_t channels, size_t output_width, const int8_t** input, const void* weights,
    int8_t* output, intptr_t input_stride, size_t output_increment, size_t input_offset, const int8_t* zero,
    const union xnn_qs8_qc8w_conv_minmax_params* params)
{
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const int32_t zero_point = params->fp32_scalar.output_zero_point;
  const struct row row = {
      .input = input,
      .input_stride = input_stride,
      .output = output,
      .output_stride = channels + output_increment,
      .input_offset = input_offset,
      .zero = zero,
      .order = _mm512_add_epi32(
          _mm512_mullo_epi32(lane, _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(0x30201000)),
      .min_less_zero_point = _mm512_set1_ps(params->fp32_scalar.output_min - zero_point),
      .max_less_zero_point = _mm512_set1_ps(params->fp32_scalar.output_max - zero_point),
      .zero_point = _mm512_set1_epi32(zero_point),
  };
  const size_t columns = (size_t) input_stride / (kernel * sizeof(void*));
  if ((size_t) input_stride % (kernel * sizeof(void*)) != 0 || columns > 2) {
    sweep_channels(kernel, kernel, &row, output_width, weights, channels);
  } else if (columns == 2) {
    sweep_channels(kernel, 2, &row, output_width, weights, channels);
  } else {
    sweep_channels(kernel, 1, &row, output_width, weights, channels);
  }
}

QS8_DEPTHWISE(xnnpack_sys_qs8_depthwise_9p16c) {
  depthwise(
      3, channels, output_width, input, weights, output, input_stride, output_increment, input_offset, zero, params);
}

QS8_DEPTHWISE(xnnpack_sys_qs8_depthwise_25p16c) {
  depthwise(
      5, channels, output_width, input, weights, output, input_stride, output_increment, input_offset, zero, params);
}
