// Matrix products of 8-bit integers without dot products of bytes: included by a file for each instruction set, which defines `ISA`,
// and `ROWS` of the tile. Vectors are as wide as the instruction set (`vector_x86.h`), and a tile has two of them.
//
// One instruction multiplies unsigned by signed bytes and adds neighbouring products in 16 bits, a second one adds neighbouring sums
// in 32 bits. This is twice the work of products of 16 bits, which XNNPACK computes from widened bytes. But the sum of two products
// saturates if two neighbouring weights have one sign and a sum beyond 128. When weights are packed, each step of four inputs gets the
// fastest form that is exact for all inputs, and the steps of a tile are sorted by form (`gemm_q8_sort.h`):
// - FAST: no pair of weights can saturate, in one of the three ways to pair four inputs;
// - SIGNS: inputs are signed, their magnitudes are multiplied by weights with their signs, a third more work. 128 times the sum of
//   these weights compensates the other range of inputs;
// - WIDE: products of 16 bits, for weights of -128, which have no opposite.
// With AVX-VNNI nothing saturates, and all steps are FAST, in their order.
//
// Sums of images quantized at run time (DYNAMIC) become floats as in TFLite's reference kernels, as in `conv_qd8.c`, those of rows
// (DYNAMIC_ROWS) as in XNNPACK's microkernels.
//
// Inputs of a tile are first copied to a buffer, position after position, in which signed inputs have 128 added; the bias compensates
// it. Where it pays, the buffer also has them in the orders of the other pairings, so that a step only has to know where its inputs
// are. A tile that needs few inputs, or whose inputs no other tile needs, takes them from where they are, with their signs (DIRECT).
//
// 128 is subtracted from unsigned weights when they are packed, and the difference of their zero point from 128 is multiplied by the sum
// of a row's inputs, once for all channels.
//
// `kind`, `source` and `rows` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays
// become registers.

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "ukernels/few_bytes.h"
#include "ukernels/gemm_q8_bytes_api.h"
#include "ukernels/gemm_qd8.h"
#include "ukernels/input_rows.h"
#include "ukernels/q8.h"
#include "ukernels/with_isa.h"
#include "xnnpack/math.h"

// GCC 12 would copy every sum twice in each step.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-coalesce-vars")
#endif

#define DEPTH Q8_BYTES_DEPTH
#define VECTORS Q8_BYTES_VECTORS
#define CHANNELS (VECTORS * VECTOR_LANES)
// Bytes of a row in the buffer.
#define BUFFER Q8_BYTES_BLOCK(CHANNELS)
// Most bytes of a row that are in the buffer in the order of each pairing.
#define PAIRED Q8_BYTES_PAIRED(CHANNELS)
// Bytes of a line of the cache.
#define APART 64
#define UNROLL _Pragma("GCC unroll 8")

enum form { WIDE, SIGNS, FAST };

// Whether sums of two products may saturate.
#ifdef __AVXVNNI__
enum { SATURATES = false };
#else
enum { SATURATES = true };
#endif

// Ways to pair the four inputs of a step.
enum { PAIRINGS = 3 };

enum source {
  // Weights whose steps are sorted.
  SORTED,
  // Weights as XNNPACK packs them: all steps are WIDE, and 128 is not subtracted from unsigned weights.
  PLAIN,
};

// The next inputs to copy.
struct cursor {
  size_t position;
  size_t at;
};

// Inputs of some positions: unsigned, the signs of signed ones, their magnitudes, and unsigned ones in the orders of the other
// pairings. A step reads signs and magnitudes at the same place: if they were whole pages apart, they would compete for the same
// lines of the first-level cache.
struct buffer_row {
  uint8_t inputs[BUFFER + APART];
  int8_t signs[BUFFER + APART];
  uint8_t magnitudes[BUFFER + APART];
  uint8_t paired[PAIRINGS - 1][PAIRED + APART];
};

struct buffer {
  struct buffer_row rows[ROWS];
} __attribute__((aligned(64)));

#include "ukernels/gemm_q8_buffer.h"
#include "ukernels/gemm_q8_store.h"

static XNN_INLINE vint four_inputs(const void* from) {
  int32_t four;
  memcpy(&four, from, sizeof(four));
  return VINT(set1_epi32, four);
}

static XNN_INLINE vint add_dot_products(vint sums, vint inputs, vint weights) {
#ifdef __AVXVNNI__
  return _mm256_dpbusd_avx_epi32(sums, inputs, weights);
#else
  const vint pairs = VINT(maddubs_epi16, inputs, weights);
  return VINT(add_epi32, sums, VINT(madd_epi16, pairs, VINT(set1_epi16, 1)));
#endif
}

// Gives weights the signs of inputs, of which the buffer has `signs_of`.
static XNN_INLINE vint with_signs(vint weights, vint signs) {
#ifdef __AVX512BW__
  return VINT(sub_epi8, VINT_BITS(xor, weights, signs), signs);
#else
  return VINT(sign_epi8, weights, signs);
#endif
}

// Adds products of four inputs, from byte `i` of the rows on, with the channels of a tile, or of its first vector.
static XNN_INLINE void step(
    enum form form, enum kind kind, enum source source, size_t rows, size_t vectors, const struct buffer* buffer, size_t i,
    const uint8_t* weights, vint sums[ROWS][VECTORS])
{
  vint bytes[VECTORS];
  vint odd[VECTORS];
  UNROLL for (size_t v = 0; v < vectors; v++) {
    bytes[v] = vint_load(weights + v * sizeof(vint));
    if (kind == UNSIGNED && source == PLAIN) {
      bytes[v] = VINT_BITS(xor, bytes[v], VINT(set1_epi8, (int8_t) OFFSET));
    }
    if (form == WIDE) {
      odd[v] = VINT(srai_epi16, bytes[v], 8);
      bytes[v] = VINT(srai_epi16, VINT(slli_epi16, bytes[v], 8), 8);
    }
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    const struct buffer_row* from = &buffer->rows[row];
    if (form == FAST) {
      const vint inputs = four_inputs((const uint8_t*) from + i);
      UNROLL for (size_t v = 0; v < vectors; v++) {
        sums[row][v] = add_dot_products(sums[row][v], inputs, bytes[v]);
      }
    } else if (form == SIGNS) {
      const vint signs = four_inputs(from->signs + i);
      const vint magnitudes = four_inputs(from->magnitudes + i);
      UNROLL for (size_t v = 0; v < vectors; v++) {
        sums[row][v] = add_dot_products(sums[row][v], magnitudes, with_signs(bytes[v], signs));
      }
    } else {
      const vint inputs = four_inputs(from->inputs + i);
      const vint even_inputs = VINT_BITS(and, inputs, VINT(set1_epi16, 0xFF));
      const vint odd_inputs = VINT(srli_epi16, inputs, 8);
      UNROLL for (size_t v = 0; v < vectors; v++) {
        const vint products =
            VINT(add_epi32, VINT(madd_epi16, even_inputs, bytes[v]), VINT(madd_epi16, odd_inputs, odd[v]));
        sums[row][v] = VINT(add_epi32, sums[row][v], products);
      }
    }
  }
}

// Adds products of the inputs in the buffer, and returns the address behind the weights.
static XNN_INLINE const uint8_t* multiply(
    enum kind kind, enum source source, size_t rows, size_t vectors, const struct buffer* buffer, size_t depth, const uint8_t* weights,
    const struct q8_bytes_order* order, vint sums[ROWS][VECTORS])
{
  const enum form only_form = source == PLAIN ? WIDE : FAST;
  if (source == PLAIN || !SATURATES) {
    size_t i = 0;
#ifdef __AVXVNNI__
    // An instruction that adds to a sum waits for the last one. One row has too few sums, and so adds to more in turn.
    if (rows == 1) {
      enum { MORE = 4 };
      vint more[MORE][ROWS][VECTORS] = {0};
      for (; depth - i >= MORE * DEPTH; i += MORE * DEPTH) {
        UNROLL for (size_t j = 0; j < MORE; j++) {
          step(only_form, kind, source, rows, vectors, buffer, i + j * DEPTH, weights, more[j]);
          weights += CHANNELS * DEPTH;
        }
      }
      UNROLL for (size_t j = 0; j < MORE * VECTORS; j++) {
        sums[0][j % VECTORS] = VINT(add_epi32, sums[0][j % VECTORS], more[j / VECTORS][0][j % VECTORS]);
      }
    }
#endif
    for (; i < depth; i += DEPTH) {
      step(only_form, kind, source, rows, vectors, buffer, i, weights, sums);
      weights += CHANNELS * DEPTH;
    }
    return weights;
  }
  const uint16_t* places = order->places;
  const uint16_t* const end = places + depth / DEPTH;
  const uint16_t* const wide_end = places + order->wide;
  const uint16_t* const signs_end = wide_end + order->signs;
  for (; places != wide_end; places++) {
    step(WIDE, kind, source, rows, vectors, buffer, *places, weights, sums);
    weights += CHANNELS * DEPTH;
  }
  for (; places != signs_end; places++) {
    step(SIGNS, kind, source, rows, vectors, buffer, *places, weights, sums);
    weights += CHANNELS * DEPTH;
  }
  for (; places != end; places++) {
    step(FAST, kind, source, rows, vectors, buffer, *places, weights, sums);
    weights += CHANNELS * DEPTH;
  }
  return weights;
}

// Adds products of four inputs of each row with `vectors` vectors of channels from `first` on.
static XNN_INLINE void step_directly(
    size_t rows, size_t first, size_t vectors, const uint32_t inputs[ROWS], const uint8_t* weights, vint sums[ROWS][VECTORS])
{
  vint bytes[VECTORS];
  UNROLL for (size_t v = first; v < first + vectors; v++) {
    bytes[v] = vint_load(weights + v * sizeof(vint));
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    const vint four = VINT(set1_epi32, (int32_t) inputs[row]);
    const vint signs = signs_of_vector(four);
    const vint magnitudes = VINT(abs_epi8, four);
    UNROLL for (size_t v = first; v < first + vectors; v++) {
      sums[row][v] = add_dot_products(sums[row][v], magnitudes, with_signs(bytes[v], signs));
    }
  }
}

// Adds products of the inputs in some steps of a position, at `from` for each row.
static XNN_INLINE void multiply_position(
    size_t rows, size_t first, size_t vectors, const uint8_t* const from[ROWS], struct q8_bytes_steps steps, size_t depth,
    const uint8_t* weights, vint sums[ROWS][VECTORS])
{
  uint32_t inputs[ROWS];
  size_t i = steps.first;
  for (; i < steps.end && i < depth / DEPTH; i++) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      memcpy(&inputs[row], from[row] + i * DEPTH, DEPTH);
    }
    step_directly(rows, first, vectors, inputs, weights + i * CHANNELS * DEPTH, sums);
  }
  if (i < steps.end) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      inputs[row] = load_up_to_4(from[row] + i * DEPTH, depth % DEPTH);
    }
    step_directly(rows, first, vectors, inputs, weights + i * CHANNELS * DEPTH, sums);
  }
}

// Adds products of inputs that are not in the buffer. Leaves out steps in which a vector of channels has no weights other than 0.
static XNN_INLINE void multiply_directly(
    size_t rows, size_t vectors, const struct input* input, const uint8_t* weights, const struct q8_bytes_order* order,
    vint sums[ROWS][VECTORS])
{
  const size_t steps = divide_round_up(input->depth, DEPTH);
  struct q8_bytes_steps nonzero[VECTORS];
  for (size_t v = 0; v < VECTORS; v++) {
    // Packed weights from a file may be damaged.
    nonzero[v] = (struct q8_bytes_steps) {order->nonzero[v].first, (uint16_t) min(order->nonzero[v].end, steps)};
  }
  const bool together = vectors == 1 || (nonzero[0].first == nonzero[1].first && nonzero[0].end == nonzero[1].end);
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * input->rows_of_position + row);
    }
    if (together) {
      multiply_position(rows, 0, vectors, from, nonzero[0], input->depth, weights, sums);
    } else {
      multiply_position(rows, 0, 1, from, nonzero[0], input->depth, weights, sums);
      multiply_position(rows, 1, 1, from, nonzero[1], input->depth, weights, sums);
    }
    weights += steps * CHANNELS * DEPTH;
  }
}

// State that the tiles of a product share.
struct product {
  const struct input* input;
  // Bytes of a row at all positions, each padded to whole steps.
  size_t depth;
  // Multiplied by the sum of a row's inputs for UNSIGNED, and by the packed sums of weights for DYNAMIC.
  int32_t factor;
  struct output output;
  // Whether the buffer has inputs, and in the order of each pairing.
  bool filled;
  bool paired;
  // UNSIGNED: contributions of the weights' zero point.
  vint offsets[ROWS];
};

// Returns the factor of the packed sums of weights.
static XNN_INLINE int32_t factor_of(enum kind kind, const struct product* product, size_t row) {
  return kind == DYNAMIC_ROWS ? product->output.of_rows[row].zero_point + OFFSET : product->factor;
}

// Computes the first `vectors` vectors of a tile, and returns the end of its weights. The first tile fills the buffer.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, enum source source, size_t rows, size_t vectors, bool is_first, size_t mr, size_t nc,
    struct product* product, struct buffer* buffer, const uint8_t* weights)
{
  const struct input* input = product->input;
  const size_t depth = product->depth;
  const float* scales = (const float*) (weights + CHANNELS * sizeof(int32_t) + depth * CHANNELS);
  const uint8_t* end =
      (const uint8_t*) (kind == SIGNED ? scales + CHANNELS : has_float_outputs(kind) ? scales + 2 * CHANNELS : scales);
  vint sums[ROWS][VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const vint packed = vint_load(weights + v * sizeof(vint));
    UNROLL for (size_t row = 0; row < rows; row++) {
      sums[row][v] = has_float_outputs(kind) ? VINT(mullo_epi32, packed, VINT(set1_epi32, factor_of(kind, product, row))) : packed;
      if (source == SORTED) {
        sums[row][v] = VINT(add_epi32, sums[row][v], vint_load(end + v * sizeof(vint)));
      }
    }
  }
  const struct q8_bytes_order* order = (const struct q8_bytes_order*) (end + CHANNELS * sizeof(int32_t));
  weights += CHANNELS * sizeof(int32_t);
  struct cursor cursor = {0};
  // Sums of unsigned inputs are taken in the buffer.
  const bool is_direct = source == SORTED && SATURATES && kind != UNSIGNED && order->direct != 0;
  if (is_direct) {
    multiply_directly(rows, vectors, input, weights, order, sums);
  }
  for (size_t done = 0; done < depth && !is_direct;) {
    size_t some = depth;
    const bool paired = source == SORTED && SATURATES && order->paired != 0;
    // Each tile has its own pairings, or none.
    if (!product->filled || depth > BUFFER || (paired && !product->paired)) {
      product->filled = true;
      product->paired = paired;
      // Two calls, so that it is a constant in each.
      some = paired ? fill(kind, true, rows, input, depth, &cursor, buffer)
                    : fill(kind, false, rows, input, depth, &cursor, buffer);
    }
    if (kind == UNSIGNED && is_first) {
      UNROLL for (size_t row = 0; row < rows; row++) {
        const uint32_t offset = sum_of(buffer->rows[row].inputs, some) * (uint32_t) product->factor;
        product->offsets[row] = VINT(add_epi32, product->offsets[row], VINT(set1_epi32, (int32_t) offset));
      }
    }
    weights = multiply(kind, source, rows, vectors, buffer, some, weights, order, sums);
    order = (const struct q8_bytes_order*) (order->places + BUFFER / DEPTH);
    done += some;
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (kind == UNSIGNED) {
      UNROLL for (size_t v = 0; v < VECTORS; v++) {
        sums[row][v] = VINT(add_epi32, sums[row][v], product->offsets[row]);
      }
    }
    if (row < mr && has_float_outputs(kind)) {
      store_floats(kind, &product->output, row, sums[row], scales, nc);
    } else if (row < mr) {
      store_row(kind, &product->output, row, sums[row], scales, nc);
    }
  }
  return source == SORTED ? end + xnnpack_sys_q8_order_size(CHANNELS, depth) : end;
}

static XNN_INLINE void multiply_tiles(
    enum kind kind, enum source source, size_t rows, size_t mr, size_t nc, const struct input* input,
    const uint8_t* weights, int32_t factor, struct output output)
{
  struct buffer buffer;
  struct product product = {
      .input = input, .depth = round_up_po2(input->depth, DEPTH) * input->positions, .factor = factor, .output = output};
  UNROLL for (size_t row = 0; row < rows; row++) {
    product.offsets[row] = vint_zero();
  }
  for (bool is_first = true;; is_first = false) {
    weights = nc > VECTOR_LANES ? tile(kind, source, rows, VECTORS, is_first, mr, nc, &product, &buffer, weights)
                                : tile(kind, source, rows, 1, is_first, mr, nc, &product, &buffer, weights);
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    product.output.at += product.output.tile_stride;
  }
}

#include "ukernels/gemm_q8_sort.h"

#define OUTPUT(requantization_of_kind) \
  const struct output output = { \
      .at = (uint8_t*) c, .row_stride = cm_stride, .tile_stride = cn_stride, \
      .requantization = requantization_of_kind(params)}

// Rows behind the last of `mr` repeat it.
#define GEMM_ROWS(tile_rows) \
  const uint8_t* rows[tile_rows]; \
  for (size_t row = 0; row < (tile_rows); row++) { \
    rows[row] = (const uint8_t*) a + min(row, mr - 1) * a_stride; \
  } \
  const struct input input = {.rows = rows, .rows_of_position = tile_rows, .positions = 1, .depth = kc}

#define GEMM(kind, source, tile_rows, of_weights, requantization_of_kind) \
  ASSERT_GEMM(tile_rows, 1); \
  OUTPUT(requantization_of_kind); \
  GEMM_ROWS(tile_rows); \
  multiply_tiles(kind, source, tile_rows, mr, nc, &input, w, of_weights, output)

#define IGEMM(kind, source, tile_rows, of_weights, requantization_of_kind) \
  ASSERT_IGEMM(tile_rows, 1); \
  OUTPUT(requantization_of_kind); \
  const struct input input = { \
      .rows = (const uint8_t* const*) a, .rows_of_position = tile_rows, \
      .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, .offset = a_offset, .zero = (const uint8_t*) zero, \
      .padding = (const uint8_t*) zero}; \
  multiply_tiles(kind, source, tile_rows, mr, nc, &input, w, of_weights, output)

#define UNSIGNED_OFFSET (OFFSET - params->rndnu_scalar.kernel_zero_point)

#define MICROKERNELS(rows, suffix) \
  QS8_GEMM(WITH_ISA(xnnpack_sys_qs8_gemm_minmax_ukernel_##suffix##__)) { \
    GEMM(SIGNED, SORTED, rows, 0, signed_requantization); \
  } \
  QS8_IGEMM(WITH_ISA(xnnpack_sys_qs8_igemm_minmax_ukernel_##suffix##__)) { \
    IGEMM(SIGNED, SORTED, rows, 0, signed_requantization); \
  } \
  QU8_GEMM(WITH_ISA(xnnpack_sys_qu8_gemm_minmax_ukernel_##suffix##__)) { \
    GEMM(UNSIGNED, SORTED, rows, UNSIGNED_OFFSET, unsigned_requantization); \
  } \
  QU8_IGEMM(WITH_ISA(xnnpack_sys_qu8_igemm_minmax_ukernel_##suffix##__)) { \
    IGEMM(UNSIGNED, SORTED, rows, UNSIGNED_OFFSET, unsigned_requantization); \
  }

// Rows of a product, and images of a convolution. XNNPACK has parameters of as many rows as a tile.
#define DYNAMIC_MICROKERNELS(tile_rows, suffix) \
  QC8W_GEMM(WITH_ISA(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_##suffix##__)) { \
    ASSERT_GEMM(tile_rows, 1); \
    const struct output output = { \
        .at = (uint8_t*) c, .row_stride = cm_stride, .tile_stride = cn_stride, .of_rows = quantization_params, \
        .min = VINT(set1_ps, params->scalar.min), .max = VINT(set1_ps, params->scalar.max)}; \
    GEMM_ROWS(tile_rows); \
    multiply_tiles(DYNAMIC_ROWS, SORTED, tile_rows, mr, nc, &input, w, 0, output); \
  } \
  QC8W_IGEMM(WITH_ISA(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##suffix##__)) { \
    ASSERT_IGEMM(tile_rows, 1); \
    const struct output output = { \
        .at = (uint8_t*) c, .row_stride = cm_stride, .tile_stride = cn_stride, \
        .scale = VINT(set1_ps, quantization_params->inv_scale), .min = VINT(set1_ps, params->scalar.min), \
        .max = VINT(set1_ps, params->scalar.max)}; \
    const struct input input = { \
        .rows = (const uint8_t* const*) a, .rows_of_position = tile_rows, \
        .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, .offset = a_offset, .zero = (const uint8_t*) zero, \
        .padding = (const uint8_t*) zero_data}; \
    multiply_tiles(DYNAMIC, SORTED, tile_rows, mr, nc, &input, w, quantization_params->zero_point + OFFSET, output); \
  }

// Transposed convolutions, whose weights are not sorted.
#define PLAIN_MICROKERNELS(rows, suffix) \
  QU8_GEMM(WITH_ISA(xnnpack_sys_plain_qu8_gemm_minmax_ukernel_##suffix##__)) { \
    GEMM(UNSIGNED, PLAIN, rows, UNSIGNED_OFFSET, unsigned_requantization); \
  } \
  QU8_IGEMM(WITH_ISA(xnnpack_sys_plain_qu8_igemm_minmax_ukernel_##suffix##__)) { \
    IGEMM(UNSIGNED, PLAIN, rows, UNSIGNED_OFFSET, unsigned_requantization); \
  }
