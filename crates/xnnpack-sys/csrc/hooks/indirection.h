// Pointers of convolutions into their inputs, for as many rows of an image as differ in more than their distance from the top.
// XNNPACK keeps them for all rows: a megabyte for the first layer of a network, which takes as long to write at the start as the
// layer takes to run, and passes through the cache at each run.

#ifndef XNNPACK_SYS_INDIRECTION_H
#define XNNPACK_SYS_INDIRECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/allocator.h"
#include "xnnpack/common.h"
#include "xnnpack/compute.h"
#include "xnnpack/indirection.h"
#include "xnnpack/operator.h"

// Header of the pointers of an image's outputs (pixels) if tiles are computed, or of its rows if rows are. Outputs in
// [start, end) repeat: each has the pointers of the one `period` before it, `step` bytes further on. The pointers follow in
// memory, `stride` for each output.
struct xnnpack_sys_pointers {
  size_t start;
  size_t period;
  size_t end;
  size_t step;
  size_t stride;
  // 2^40 divided by `period`, rounded up: quotients of numbers below 2^24 are exact for periods below 2^16.
  uint64_t reciprocal;
};

#define XNNPACK_SYS_RECIPROCAL_BITS 40

struct xnnpack_sys_place {
  const void** pointers;
  // Added to all pointers but those to padding.
  size_t offset;
};

// Returns the pointers for output (or row) `at`. Tiles wait for the result.
static XNN_INLINE struct xnnpack_sys_place xnnpack_sys_place_of(const void** buffer, size_t at) {
  const struct xnnpack_sys_pointers* all = (const struct xnnpack_sys_pointers*) buffer;
  struct xnnpack_sys_place place = {.pointers = (const void**) (all + 1) + at * all->stride, .offset = 0};
  if (at >= all->end) {
    place.pointers -= (all->end - all->start - all->period) * all->stride;
  } else if (at >= all->start + all->period) {
    const size_t periods = (at - all->start) * all->reciprocal >> XNNPACK_SYS_RECIPROCAL_BITS;
    place.pointers -= periods * (all->period * all->stride);
    place.offset = periods * all->step;
  }
  return place;
}

// Allocate memory for pointers, `bytes` if none repeat, and write them, instead of XNNPACK's functions. Return false if there is no
// memory.
bool xnnpack_sys_point_conv2d(xnn_operator_t op, size_t bytes, size_t tile, uint32_t log2_input_element_size);
bool xnnpack_sys_point_dwconv2d(
    xnn_operator_t op, size_t bytes, size_t tile, size_t step_height, size_t step_width, uint32_t log2_input_element_size);

// Returns the columns of pointers from one output of a depthwise convolution to the next. Neighbouring outputs share columns, unless
// the microkernel has more taps than the kernel and inputs are floats: it multiplies the spare inputs by 0, which would be NaN for a
// neighbour that is not finite. Then spare pointers point to zeros.
size_t xnnpack_sys_step_width(xnn_operator_t op, uint32_t log2_input_element_size);

// Whether the pointers of tiles of `tile` outputs repeat, so that the functions below compute them.
bool xnnpack_sys_tiles_repeat(xnn_operator_t op, size_t tile);

// XNNPACK's functions that compute tiles and rows, for pointers that repeat.
void xnnpack_sys_compute_igemm(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels);
// The first of them for tiles of `tile_rows` rows one after the other.
void xnnpack_sys_compute_igemm_tiles(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels, size_t tile_rows);
void xnnpack_sys_compute_batch_igemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_dqigemm(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_batch_dqigemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_dwconv_unipass(const struct dwconv_context* context, size_t image, size_t y);

#endif
