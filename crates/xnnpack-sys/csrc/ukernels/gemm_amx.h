// Matrix products of 8-bit integers with AMX: up to 32 rows of inputs by tiles of 32 channels. Weights are packed as for `gemm_q8.c`:
// four inputs of 32 channels lie side by side, and half of that is a row of a tile register.
//
// Rows are read in place if they follow each other in memory and fill whole words. Otherwise they are gathered on the stack first
// and padded with zeros, once for all channels unless they are very long.

#ifndef XNNPACK_SYS_GEMM_AMX_H
#define XNNPACK_SYS_GEMM_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/amx.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

#define AMX_ROWS (2 * AMX_TILE_ROWS)
#define AMX_CHANNELS 32
// Inputs of a channel side by side.
#define AMX_DEPTH 4
#define AMX_LANES (AMX_TILE_BYTES / AMX_DEPTH)
// Bytes from four inputs of all channels to the next four.
#define AMX_WEIGHTS_STRIDE (AMX_CHANNELS * AMX_DEPTH)
// Bytes of a row that are gathered at once, a multiple of a tile's. Rows are an odd number of cache lines apart, so that they are in
// different sets of the cache.
#define AMX_GATHERED 2048
#define AMX_GATHERED_STRIDE (AMX_GATHERED + AMX_TILE_BYTES)

// Rows that are gathered together.
#define AMX_LINES 8
#define AMX_UNROLL _Pragma("GCC unroll 8")

// Whether inputs and weights are signed. NIBBLES: signed inputs, and weights of four bits; a byte has the weights for an input and for the
// one AMX_DEPTH behind it, and both are unpacked as 16 times their value.
enum amx_bytes { AMX_SIGNED, AMX_UNSIGNED, AMX_NIBBLES };

// Inputs of a channel that are packed together.
static XNN_INLINE size_t amx_step(enum amx_bytes bytes) { return bytes == AMX_NIBBLES ? 2 * AMX_DEPTH : AMX_DEPTH; }

// Bytes of weights of all channels for a number of inputs.
static XNN_INLINE size_t amx_weights_bytes(enum amx_bytes bytes, size_t inputs) {
  return inputs * AMX_CHANNELS / (bytes == AMX_NIBBLES ? 2 : 1);
}

// A part of all rows for tile registers: `tiles` of 64 bytes each, and behind them the last `rest` bytes, at the end of tiles of their
// own, behind zeros.
struct amx_part {
  // Position in rows.
  size_t start;
  const uint8_t* at;
  size_t stride;
  size_t tiles;
  size_t rest;
};

struct amx_rows {
  struct amx_input input;
  // Bytes of a position, and of all positions, padded to whole steps.
  size_t step;
  size_t padded;
  size_t bytes;
  // Bytes of a part; the last part has the rest.
  size_t part_bytes;
  struct amx_part part;
  uint8_t gathered[AMX_ROWS][AMX_GATHERED_STRIDE] __attribute__((aligned(AMX_TILE_BYTES)));
  uint8_t rest[AMX_ROWS][AMX_TILE_BYTES] __attribute__((aligned(AMX_TILE_BYTES)));
};

static XNN_INLINE bool amx_is_direct(const struct amx_rows* rows) {
  return rows->input.places == NULL && rows->input.depth % rows->step == 0;
}

static XNN_INLINE uintptr_t amx_row_at(const struct amx_input* input, size_t position, size_t row) {
  if (input->places == NULL) {
    return (uintptr_t) (input->at + row * input->stride);
  }
  const uint8_t* place = input->places[position * input->places_of_position + row];
  return (uintptr_t) (place == input->zero ? input->padding : place + input->offset);
}

// Gathers bytes of all rows from `start` on, behind `skipped` zeros. Writes 64 bytes for each row.
static void amx_gather(
    const struct amx_rows* rows, size_t start, size_t bytes, size_t skipped, uint8_t* to, size_t stride)
{
  const struct amx_input* input = &rows->input;
  struct {
    size_t position;
    // Address of the row's first byte relative to the line.
    size_t from;
    __mmask64 own;
  } pieces[AMX_TILE_BYTES / AMX_DEPTH];
  size_t count = 0;
  size_t position = start / rows->padded;
  size_t within = start % rows->padded;
  for (size_t at = skipped; at < skipped + bytes; count++, position++, within = 0) {
    const size_t all = min(rows->padded - within, skipped + bytes - at);
    const size_t own = input->depth > within ? min(input->depth - within, all) : 0;
    pieces[count].position = position;
    pieces[count].from = within - at;
    pieces[count].own = own == 0 ? 0 : UINT64_MAX >> (AMX_TILE_BYTES - own) << at;
    at += all;
  }
  for (size_t row = 0; row < input->rows; row += AMX_LINES) {
    __m512i lines[AMX_LINES];
    AMX_UNROLL for (size_t i = 0; i < AMX_LINES; i++) {
      lines[i] = _mm512_setzero_si512();
    }
    for (size_t piece = 0; piece < count; piece++) {
      AMX_UNROLL for (size_t i = 0; i < AMX_LINES; i++) {
        const uintptr_t at = amx_row_at(input, pieces[piece].position, min(row + i, input->rows - 1));
        lines[i] = _mm512_mask_loadu_epi8(lines[i], pieces[piece].own, (const void*) (at + pieces[piece].from));
      }
    }
    AMX_UNROLL for (size_t i = 0; i < AMX_LINES; i++) {
      _mm512_store_si512(to + (row + i) * stride, lines[i]);
    }
  }
}

// Prepares the part from `start` on. Rows shorter than a tile are one tile with a shape of its own.
static void amx_take_part(struct amx_rows* rows, size_t start) {
  const struct amx_input* input = &rows->input;
  const size_t bytes = min(rows->part_bytes, rows->bytes - start);
  const bool is_short = rows->bytes < AMX_TILE_BYTES;
  struct amx_part part = {
      .start = start,
      .tiles = is_short ? 1 : bytes / AMX_TILE_BYTES,
      .rest = is_short ? 0 : bytes % AMX_TILE_BYTES,
  };
  if (amx_is_direct(rows)) {
    part.at = input->at + start;
    part.stride = input->stride;
  } else {
    part.at = rows->gathered[0];
    part.stride = AMX_GATHERED_STRIDE;
    for (size_t at = 0; at < part.tiles * AMX_TILE_BYTES; at += AMX_TILE_BYTES) {
      amx_gather(rows, start + at, min(bytes, AMX_TILE_BYTES), 0, rows->gathered[0] + at, AMX_GATHERED_STRIDE);
    }
  }
  if (part.rest != 0) {
    amx_gather(
        rows, start + bytes - part.rest, part.rest, AMX_TILE_BYTES - part.rest, rows->rest[0], AMX_TILE_BYTES);
  }
  rows->part = part;
}

// Sets the shapes of the registers: 0 to 3 hold sums (2 and 3 of rows from 16 on, 1 and 3 of channels from 16 on), 4 and 5 rows,
// 6 and 7 weights.
static XNN_INLINE void amx_configure(size_t rows, size_t inputs) {
  const uint32_t name = (uint32_t) (rows << 16 | inputs);
  if (xnnpack_sys_amx_turn.shapes == name) {
    return;
  }
  const uint8_t front = (uint8_t) min(rows, AMX_TILE_ROWS);
  const uint8_t back = (uint8_t) (rows - front);
  const uint8_t words = (uint8_t) (inputs / AMX_DEPTH);
  const uint16_t all = AMX_TILE_BYTES;
  const uint16_t sums_of_back = back == 0 ? 0 : all;
  const uint16_t inputs_of_back = back == 0 ? 0 : (uint16_t) inputs;
  const struct amx_shapes shapes = {
      .palette = 1,
      .row_bytes = {all, all, sums_of_back, sums_of_back, (uint16_t) inputs, inputs_of_back, all, all},
      .rows = {front, front, back, back, front, back, words, words},
  };
  AMX_CONFIGURE(&shapes);
  xnnpack_sys_amx_turn.shapes = xnnpack_sys_amx_turn.keeps_shapes ? name : 0;
}

// Finds out whether the rows of a kernel with one position are `stride` apart, as they often are.
static XNN_INLINE void amx_find_stride(struct amx_input* input) {
  const uint8_t* const* places = input->places;
  if (places == NULL || input->positions != 1) {
    return;
  }
  const uintptr_t stride = input->rows > 1 ? (uintptr_t) places[1] - (uintptr_t) places[0] : 0;
  bool is_even = places[0] != input->zero;
  for (size_t row = 1; row < input->rows; row++) {
    is_even &= places[row] != input->zero && (uintptr_t) places[row] - (uintptr_t) places[row - 1] == stride;
  }
  if (is_even) {
    input->places = NULL;
    input->at = places[0] + input->offset;
    input->stride = stride;
  }
}

static XNN_INLINE void amx_start(enum amx_bytes bytes, struct amx_rows* rows, const struct amx_input* of) {
  struct amx_input* input = &rows->input;
  *input = *of;
  amx_find_stride(input);
  rows->step = amx_step(bytes);
  rows->padded = round_up_po2(input->depth, rows->step);
  rows->bytes = input->positions * rows->padded;
  rows->part_bytes = amx_is_direct(rows) ? rows->bytes : AMX_GATHERED;
  amx_configure(input->rows, min(rows->bytes, AMX_TILE_BYTES));
  amx_take_part(rows, 0);
}

#define AMX_MULTIPLY_BYTES(bytes, sums, rows, columns) \
  if ((bytes) == AMX_UNSIGNED) { \
    AMX_MULTIPLY(uu, sums, rows, columns); \
  } else { \
    AMX_MULTIPLY(ss, sums, rows, columns); \
  }

// NIBBLES: unpacks the weights for up to a tile's inputs.
static XNN_INLINE void amx_unpack(bool two_halves, const uint8_t* weights, size_t inputs, uint8_t* to) {
  const __m512i upper = _mm512_set1_epi8((int8_t) 0xF0);
  const size_t bytes_of_row = two_halves ? AMX_WEIGHTS_STRIDE : AMX_TILE_BYTES;
  for (size_t input = 0; input < inputs; input += 2 * AMX_DEPTH) {
    for (size_t at = 0; at < bytes_of_row; at += AMX_TILE_BYTES) {
      const __m512i both = _mm512_loadu_si512(weights + at);
      _mm512_store_si512(to + at, _mm512_and_si512(_mm512_slli_epi16(both, 4), upper));
      _mm512_store_si512(to + AMX_WEIGHTS_STRIDE + at, _mm512_and_si512(both, upper));
    }
    weights += AMX_WEIGHTS_STRIDE;
    to += 2 * AMX_WEIGHTS_STRIDE;
  }
}

// Adds the products of a tile of rows. `bytes`, `two_rows` and `two_halves` are constants wherever this is inlined.
static XNN_INLINE void amx_multiply_tile(
    enum amx_bytes bytes, bool two_rows, bool two_halves, const struct amx_rows* rows, const uint8_t* inputs, size_t stride,
    const uint8_t* weights)
{
  uint8_t unpacked[AMX_TILE_BYTES * AMX_CHANNELS] __attribute__((aligned(AMX_TILE_BYTES)));
  if (bytes == AMX_NIBBLES) {
    amx_unpack(two_halves, weights, min(rows->bytes, AMX_TILE_BYTES), unpacked);
    weights = unpacked;
  }
  AMX_LOAD(4, inputs, stride);
  AMX_LOAD(6, weights, AMX_WEIGHTS_STRIDE);
  AMX_MULTIPLY_BYTES(bytes, 0, 4, 6);
  if (two_halves) {
    AMX_LOAD(7, weights + AMX_TILE_BYTES, AMX_WEIGHTS_STRIDE);
    AMX_MULTIPLY_BYTES(bytes, 1, 4, 7);
  }
  if (two_rows) {
    AMX_LOAD(5, inputs + AMX_TILE_ROWS * stride, stride);
    AMX_MULTIPLY_BYTES(bytes, 2, 5, 6);
    if (two_halves) {
      AMX_MULTIPLY_BYTES(bytes, 3, 5, 7);
    }
  }
}

static XNN_INLINE void amx_multiply_part(
    enum amx_bytes bytes, bool two_rows, bool two_halves, const struct amx_rows* rows, const uint8_t* weights)
{
  const struct amx_part part = rows->part;
  const size_t step = amx_weights_bytes(bytes, AMX_TILE_BYTES);
  weights += amx_weights_bytes(bytes, part.start);
  for (size_t tile = 0; tile < part.tiles; tile++) {
    amx_multiply_tile(bytes, two_rows, two_halves, rows, part.at + tile * AMX_TILE_BYTES, part.stride, weights);
    weights += step;
  }
  if (part.rest != 0) {
    // Weights in front of those of the rest are multiplied by zeros.
    const uint8_t* last = weights + amx_weights_bytes(bytes, part.rest) - step;
    amx_multiply_tile(bytes, two_rows, two_halves, rows, rows->rest[0], AMX_TILE_BYTES, last);
  }
}

static XNN_INLINE void amx_multiply_all(
    enum amx_bytes bytes, bool two_rows, bool two_halves, struct amx_rows* rows, const int32_t* start,
    const uint8_t* weights, int32_t sums[AMX_ROWS][AMX_CHANNELS])
{
  AMX_LOAD(0, start, 0);
  if (two_halves) {
    AMX_LOAD(1, start + AMX_LANES, 0);
  }
  if (two_rows) {
    AMX_LOAD(2, start, 0);
    if (two_halves) {
      AMX_LOAD(3, start + AMX_LANES, 0);
    }
  }
  for (size_t at = 0; at < rows->bytes; at += rows->part_bytes) {
    if (rows->part.start != at) {
      amx_take_part(rows, at);
    }
    amx_multiply_part(bytes, two_rows, two_halves, rows, weights);
  }
  const size_t stride = sizeof(sums[0]);
  AMX_STORE(0, sums[0], stride);
  if (two_halves) {
    AMX_STORE(1, sums[0] + AMX_LANES, stride);
  }
  if (two_rows) {
    AMX_STORE(2, sums[AMX_TILE_ROWS], stride);
    if (two_halves) {
      AMX_STORE(3, sums[AMX_TILE_ROWS] + AMX_LANES, stride);
    }
  }
}

// Adds the products of all rows and up to 32 channels to `start`, which has an integer for each channel. Returns the address behind
// the weights.
static XNN_INLINE const uint8_t* amx_multiply(
    enum amx_bytes bytes, struct amx_rows* rows, size_t channels, const int32_t* start, const uint8_t* weights,
    int32_t sums[AMX_ROWS][AMX_CHANNELS])
{
  const bool two_halves = channels > AMX_LANES;
  if (rows->input.rows > AMX_TILE_ROWS) {
    if (two_halves) {
      amx_multiply_all(bytes, true, true, rows, start, weights, sums);
    } else {
      amx_multiply_all(bytes, true, false, rows, start, weights, sums);
    }
  } else if (two_halves) {
    amx_multiply_all(bytes, false, true, rows, start, weights, sums);
  } else {
    amx_multiply_all(bytes, false, false, rows, start, weights, sums);
  }
  return weights + amx_weights_bytes(bytes, rows->bytes);
}

// Returns the sum of each row's inputs times `weight`, in all lanes.
static XNN_INLINE void amx_multiply_by_one(
    enum amx_bytes bytes, struct amx_rows* rows, uint8_t weight, int32_t sums[AMX_ROWS][AMX_LANES])
{
  uint8_t weights[AMX_TILE_BYTES] __attribute__((aligned(AMX_TILE_BYTES)));
  _mm512_store_si512(weights, _mm512_set1_epi8((int8_t) weight));
  const bool two_rows = rows->input.rows > AMX_TILE_ROWS;
  AMX_LOAD(6, weights, 0);
  AMX_ZERO(0);
  if (two_rows) {
    AMX_ZERO(2);
  }
  for (size_t at = 0; at < rows->bytes; at += rows->part_bytes) {
    if (rows->part.start != at) {
      amx_take_part(rows, at);
    }
    const struct amx_part part = rows->part;
    for (size_t tile = 0; tile < part.tiles + (part.rest != 0); tile++) {
      const bool is_rest = tile == part.tiles;
      const uint8_t* from = is_rest ? rows->rest[0] : part.at + tile * AMX_TILE_BYTES;
      const size_t stride = is_rest ? AMX_TILE_BYTES : part.stride;
      AMX_LOAD(4, from, stride);
      AMX_MULTIPLY_BYTES(bytes, 0, 4, 6);
      if (two_rows) {
        AMX_LOAD(5, from + AMX_TILE_ROWS * stride, stride);
        AMX_MULTIPLY_BYTES(bytes, 2, 5, 6);
      }
    }
  }
  AMX_STORE(0, sums[0], sizeof(sums[0]));
  if (two_rows) {
    AMX_STORE(2, sums[AMX_TILE_ROWS], sizeof(sums[0]));
  }
}

#endif
