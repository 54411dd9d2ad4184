// Tiles of the products of `gemm_q8_neon.h`.

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
  int32_t offsets[ROWS];
  find_offsets(kind, rows, &product, offsets);
  FOR_EACH_TILE(weights = tile(kind, rows, mr, nc, &product, offsets, weights))
}

#include "ukernels/gemm_q8_neon_define.h"
