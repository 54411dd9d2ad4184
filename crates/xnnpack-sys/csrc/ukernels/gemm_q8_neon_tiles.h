// Tiles of the products of `gemm_q8_neon.h`. Files that include this define DEPTH, the multiple of inputs to which the weights of a position
// are padded.

// Bytes of a row whose positions are joined.
#define MAX_JOINED 512

// Inputs of several positions, for each row.
struct joined {
  uint8_t bytes[ROWS][MAX_JOINED + STEP];
  const uint8_t* rows[ROWS];
};

static XNN_INLINE size_t joined_depth(const struct input* input) {
  return input->positions * round_up_po2(input->depth, DEPTH);
}

// Copies positions one behind the other, padded as their weights are.
static XNN_INLINE XNN_OOB_READS void join(size_t rows, const struct input* input, struct joined* to) {
  const size_t apart = round_up_po2(input->depth, DEPTH);
  const uint8x16_t exist = first_bytes(input->depth);
  const uint8_t* const* from = input->rows;
  for (size_t at = 0; at < input->positions * apart; at += apart) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      // Inputs behind the position are written again, or not multiplied.
      vst1q_u8(to->bytes[row] + at, vandq_u8(vld1q_u8(address_of(input, from[row])), exist));
    }
    from += input->rows_of_position;
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    to->rows[row] = to->bytes[row];
  }
}

// Computes the first `channels` channels of a tile, and returns the end of its weights.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, size_t rows, size_t mr, size_t channels, const struct product* product,
    const int32_t offsets[ROWS], const uint8_t* weights)
{
  int32x4_t start[VECTORS];
  load_start(kind, product, weights, start);
  weights += CHANNELS * sizeof(int32_t);
  int32x4_t sums[ROWS][VECTORS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[row][v] = vaddq_s32(start_of_row(kind, product, row, start[v]), vdupq_n_s32(offsets[row]));
    }
  }
  const struct input* input = &product->input;
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * input->rows_of_position + row);
    }
    weights = multiply(kind, rows, sums, from, input->depth, weights, product->zero_point);
  }
  struct scales scales;
  weights = load_scales(kind, weights, &scales);
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (row < mr) {
      store_row(kind, &product->output, row, sums[row], &scales, channels);
    }
  }
  return weights;
}

static XNN_INLINE void multiply_tiles(
    enum kind kind, size_t rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  // In the first layer of most models, a position has fewer inputs than a vector.
  struct joined joined;
  const size_t depth = joined_depth(&product.input);
  if (product.input.positions > 1 && product.input.depth < STEP && depth <= MAX_JOINED) {
    join(rows, &product.input, &joined);
    product.input = (struct input) {.rows = joined.rows, .rows_of_position = rows, .positions = 1, .depth = depth};
  }
  int32_t offsets[ROWS];
  find_offsets(kind, rows, &product, offsets);
  FOR_EACH_TILE(weights = tile(kind, rows, mr, nc, &product, offsets, weights))
}

#include "ukernels/gemm_q8_neon_define.h"
