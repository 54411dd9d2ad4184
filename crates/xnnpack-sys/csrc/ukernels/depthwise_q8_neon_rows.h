// Rows of depthwise convolutions of int8, and of int8 quantized at run time, with NEON.
//
// XNNPACK loads all inputs and weights of an output. Here a block of 16 channels is computed for many outputs of a row: weights are
// prepared once for them, and with kernels of nine weights, three of a column after each other, a column of inputs is loaded and prepared
// once for all outputs that read it.
//
// Files for each instruction set include `depthwise_q8_neon.h`, define how inputs of a block are prepared (`struct group`, `group_of`) and
// multiplied (`add_products`, `add_columns`), and include this.
//
// `kind`, `taps`, `rows` and `shared` are constants wherever these functions are inlined, so that loops are unrolled and arrays become
// registers.

#include <string.h>

#include "ukernels/microkernel.h"
#include "xnnpack/math.h"

// Addresses of inputs that are computed at once.
#define MAX_ADDRESSES 400

// Channels that have padding with the image's zero point.
#define PADDED_CHANNELS 1024

// Weights of a kernel of up to nine are in groups of three, others in groups of four.
static XNN_INLINE size_t group_size(size_t taps) { return taps <= 9 ? COLUMN : GROUP; }
static XNN_INLINE size_t group_count(size_t taps) { return (taps + group_size(taps) - 1) / group_size(taps); }
static XNN_INLINE size_t rows_of_group(size_t taps, size_t group) {
  return min(taps - group * group_size(taps), group_size(taps));
}

// 25 weights have that many groups.
#define MAX_GROUPS 7

// Operands of a block of channels.
struct filter {
  struct group groups[MAX_GROUPS];
  int32_t start[LANES];
  // DYNAMIC.
  float biases[LANES];
  float scales[LANES];
};

// Outputs, whose neighbours are some bytes on.
struct row {
  size_t channels;
  size_t outputs;
  uint8_t* to;
  size_t output_stride;
};

static XNN_INLINE XNN_OOB_READS struct group load_group(size_t rows, const uint8_t* const* from, size_t offset) {
  uint8x16_t bytes[GROUP];
  UNROLL for (size_t row = 0; row < rows; row++) {
    bytes[row] = vld1q_u8(from[row] + offset);
  }
  return group_of(rows, bytes);
}

// Reads the weights of a block, and returns their end.
static XNN_INLINE const uint8_t* load_filter(
    enum kind kind, size_t taps, const struct output* output, const uint8_t* weights, struct filter* to)
{
  const float* const biases = (const float*) weights;
  int32x4_t start[VECTORS];
  load_block(weights, start);
  weights += LANES * sizeof(int32_t);
  // Products with the zero point.
  const uint8x16_t zero[GROUP] = {output->zero_point, output->zero_point, output->zero_point, output->zero_point};
  int32x4_t sums[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    sums[v] = vdupq_n_s32(0);
  }
  UNROLL for (size_t group = 0; group < group_count(taps); group++) {
    const size_t rows = rows_of_group(taps, group);
    uint8x16_t bytes[GROUP];
    UNROLL for (size_t row = 0; row < rows; row++) {
      bytes[row] = vld1q_u8(weights);
      weights += LANES;
    }
    to->groups[group] = group_of(rows, bytes);
    if (kind == DYNAMIC) {
      const struct group zeros = group_of(rows, zero);
      add_products(rows, sums, &zeros, &to->groups[group]);
    }
  }
  const float* const scales = (const float*) weights;
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const float32x4_t scale = vld1q_f32(scales + v * 4);
    if (kind == DYNAMIC) {
      vst1q_s32(to->start + v * 4, vnegq_s32(sums[v]));
      vst1q_f32(to->biases + v * 4, vld1q_f32(biases + v * 4));
      vst1q_f32(to->scales + v * 4, vmulq_f32(scale, output->scale));
    } else {
      vst1q_s32(to->start + v * 4, start[v]);
      vst1q_f32(to->scales + v * 4, scale);
    }
  }
  return weights + LANES * sizeof(float);
}

static XNN_INLINE void store(
    enum kind kind, const struct output* output, const struct filter* filter, const int32x4_t sums[VECTORS], uint8_t* to,
    size_t channels)
{
  if (kind == DYNAMIC) {
    store_scaled(output, (float*) to, sums, filter->biases, filter->scales, channels);
  } else {
    float32x4_t scales[VECTORS];
    load_floats(filter->scales, scales);
    store_bytes(to, vreinterpretq_u8_s8(requantize_int8(&output->int8, sums, scales)), channels);
  }
}

// Computes an output. Output `i` of three reads columns from `i * (COLUMN - shared)` on, each in its place modulo three.
#define OUTPUT(i) \
  { \
    const size_t first = (i) * (COLUMN - shared); \
    UNROLL for (size_t column = first + shared; column < first + COLUMN; column++) { \
      columns[column % COLUMN] = load_group(COLUMN, from, offset); \
      from += COLUMN; \
    } \
    int32x4_t sums[VECTORS]; \
    load_block(filter->start, sums); \
    add_columns( \
        sums, &columns[first % COLUMN], &columns[(first + 1) % COLUMN], &columns[(first + 2) % COLUMN], weights); \
    store(kind, output, filter, sums, to, row->channels - offset); \
    to += row->output_stride; \
    if (--left == 0) { \
      return; \
    } \
  }

// Computes a block of channels of a row, with a kernel of three columns, of which neighbouring outputs share some.
static XNN_INLINE void three_columns(
    enum kind kind, size_t shared, const struct output* output, const struct row* row, const struct filter* filter,
    const uint8_t* const* from, size_t offset, uint8_t* to)
{
  const struct group weights[COLUMN] = {filter->groups[0], filter->groups[1], filter->groups[2]};
  struct group columns[COLUMN];
  UNROLL for (size_t column = 0; column < shared; column++) {
    columns[column] = load_group(COLUMN, from, offset);
    from += COLUMN;
  }
  for (size_t left = row->outputs;;) {
    OUTPUT(0)
    OUTPUT(1)
    OUTPUT(2)
  }
}

// Computes a block of channels of a row.
static XNN_INLINE void any_taps(
    enum kind kind, size_t taps, const struct output* output, const struct row* row, const struct filter* filter,
    const uint8_t* const* from, size_t offset, uint8_t* to)
{
  for (size_t left = row->outputs; left != 0; left--) {
    int32x4_t sums[VECTORS];
    load_block(filter->start, sums);
    UNROLL for (size_t group = 0; group < group_count(taps); group++) {
      const size_t rows = rows_of_group(taps, group);
      const struct group inputs = load_group(rows, from + group * group_size(taps), offset);
      add_products(rows, sums, &inputs, &filter->groups[group]);
    }
    from += taps;
    store(kind, output, filter, sums, to, row->channels - offset);
    to += row->output_stride;
  }
}

// Computes some outputs of up to PADDED_CHANNELS channels.
static XNN_INLINE const uint8_t* part(
    enum kind kind, size_t taps, size_t shared, const struct output* output, const struct row* row,
    const uint8_t* const* from, const uint8_t* weights)
{
  const size_t element = kind == DYNAMIC ? sizeof(float) : sizeof(int8_t);
  for (size_t offset = 0; offset < row->channels; offset += LANES) {
    struct filter filter;
    weights = load_filter(kind, taps, output, weights, &filter);
    uint8_t* const to = row->to + offset * element;
    if (taps == 9) {
      three_columns(kind, shared, output, row, &filter, from, offset, to);
    } else {
      any_taps(kind, taps, output, row, &filter, from, offset, to);
    }
  }
  return weights;
}

struct addresses {
  const uint8_t* const* from;
  const uint8_t* zero;
  const uint8_t* padding;
  size_t offset;
};

// Copies addresses of inputs, with the offset added, or of the padding.
static XNN_INLINE void copy_addresses(const struct addresses* by, size_t first, size_t count, const uint8_t** to) {
  const uint64x2_t zero = vdupq_n_u64((uint64_t) by->zero);
  const uint64x2_t padding = vdupq_n_u64((uint64_t) by->padding);
  const uint64x2_t offset = vdupq_n_u64(by->offset);
  const uint64_t* const from = (const uint64_t*) by->from + first;
  size_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const uint64x2_t pair = vld1q_u64(from + i);
    vst1q_u64((uint64_t*) to + i, vbslq_u64(vceqq_u64(pair, zero), padding, vaddq_u64(pair, offset)));
  }
  if (i != count) {
    to[i] = from[i] == (uint64_t) by->zero ? by->padding : (const uint8_t*) from[i] + by->offset;
  }
}

static XNN_INLINE void depthwise(
    enum kind kind, size_t taps, size_t channels, size_t output_width, const uint8_t* const* input,
    const uint8_t* weights, uint8_t* to, intptr_t input_stride, size_t output_increment, size_t input_offset,
    const uint8_t* zero, const struct output* output)
{
  assert(channels != 0);
  assert(output_width != 0);
  const size_t element = kind == DYNAMIC ? sizeof(float) : sizeof(int8_t);
  const size_t output_stride = channels * element + output_increment;
  // Columns by which the kernel moves.
  const size_t moves = (size_t) input_stride / (COLUMN * sizeof(void*));
  const bool shares = taps == 9 && (size_t) input_stride % (COLUMN * sizeof(void*)) == 0 && moves < COLUMN;
  uint8_t padding[PADDED_CHANNELS + LANES];
  if (kind == DYNAMIC) {
    memset(padding, vgetq_lane_u8(output->zero_point, 0), min(channels, PADDED_CHANNELS) + LANES);
  }
  for (size_t first = 0; first < channels; first += PADDED_CHANNELS) {
    const uint8_t* end = weights;
    for (size_t x = 0; x < output_width; x += MAX_ADDRESSES / taps) {
      const struct row row = {
          .channels = min(channels - first, PADDED_CHANNELS),
          .outputs = min(output_width - x, MAX_ADDRESSES / taps),
          .to = to + first * element + x * output_stride,
          .output_stride = output_stride};
      const struct addresses addresses = {
          .from = (const uint8_t* const*) ((uintptr_t) input + x * (size_t) input_stride),
          .zero = zero,
          .padding = kind == DYNAMIC ? padding : zero + first,
          .offset = input_offset + first};
      const uint8_t* from[MAX_ADDRESSES];
      if (shares) {
        copy_addresses(&addresses, 0, ((row.outputs - 1) * moves + COLUMN) * COLUMN, from);
        end = moves == 1 ? part(kind, taps, 2, output, &row, from, weights)
                         : part(kind, taps, 1, output, &row, from, weights);
      } else {
        for (size_t i = 0; i < row.outputs; i++) {
          copy_addresses(&addresses, i * (size_t) input_stride / sizeof(void*), taps, from + i * taps);
        }
        end = part(kind, taps, 0, output, &row, from, weights);
      }
    }
    weights = end;
  }
}

#define DEFINE_SIGNED(taps, isa) \
  QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_##taps##p16c__##isa) { \
    const struct output to = {.int8 = int8_output(params)}; \
    depthwise( \
        SIGNED, taps, channels, output_width, (const uint8_t* const*) input, weights, (uint8_t*) output, input_stride, \
        output_increment, input_offset, (const uint8_t*) zero, &to); \
  }

#define DEFINE_DYNAMIC(taps, isa) \
  QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_##taps##p16c__##isa) { \
    const struct output to = dynamic_output(params); \
    depthwise( \
        DYNAMIC, taps, channels, output_width, (const uint8_t* const*) input, weights, (uint8_t*) output, input_stride, \
        output_increment, input_offset, (const uint8_t*) zero, &to); \
  }
