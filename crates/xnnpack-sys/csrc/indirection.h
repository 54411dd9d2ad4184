// Put before XNNPACK's `convolution-nhwc.c`: convolutions keep pointers into their input only for as many rows of an
// image as differ in more than how far down they are. XNNPACK keeps them for all rows: a megabyte for the first
// layer of a network, which takes as long to write at the start as the layer takes to run, and passes through the cache
// at each run.

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

// What there are pointers for: the outputs (pixels) of an image where tiles of them are computed, rows of them where rows
// are. Those in [start, end) repeat: each has the pointers of the one `period` before it, `step` bytes further on.
// Pointers follow in memory, `stride` for each.
struct xnnpack_sys_pointers {
  size_t start;
  size_t period;
  size_t end;
  size_t step;
  size_t stride;
  // 2^40 by `period`, rounded up: exact quotients of what is below 2^24, for periods below 2^16.
  uint64_t reciprocal;
};

#define XNNPACK_SYS_RECIPROCAL_BITS 40

struct xnnpack_sys_place {
  const void** pointers;
  // To be added to all pointers but those to padding.
  size_t offset;
};

// The pointers for output (or row) `at`. Tiles wait for it.
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

// In the place of XNNPACK's functions that write pointers, into memory of the size they need, which is `bytes` if there are
// those of all rows. False if there is none.
bool xnnpack_sys_point_conv2d(xnn_operator_t op, size_t bytes, size_t tile, uint32_t log2_input_element_size);
bool xnnpack_sys_point_dwconv2d(
    xnn_operator_t op, size_t bytes, size_t tile, size_t step_height, size_t step_width, uint32_t log2_input_element_size);

// Columns of pointers from one output of a depthwise convolution to the next, which share those of a kernel's columns. A
// microkernel with more taps than the kernel has reads on behind the kernel's pointers and multiplies with weights of 0. Where inputs
// are floats that would give NaN for a neighbour that is not finite: then no pointers are shared, and the spare ones point to zeros.
size_t xnnpack_sys_step_width(xnn_operator_t op, uint32_t log2_input_element_size);

// Whether tiles of so many outputs are computed from pointers that repeat, by functions of ours; XNNPACK's otherwise.
bool xnnpack_sys_tiles_repeat(xnn_operator_t op, size_t tile);

// In the place of XNNPACK's functions that compute tiles and rows.
void xnnpack_sys_compute_igemm(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_batch_igemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_dqigemm(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_batch_dqigemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels);
void xnnpack_sys_compute_dwconv_unipass(const struct dwconv_context* context, size_t image, size_t y);

#ifdef XNNPACK_SYS_POINTS
#define POINT(function, ...) \
  do { \
    if (!function(convolution_op, indirection_buffer_size, __VA_ARGS__, log2_input_element_size)) { \
      return xnn_status_out_of_memory; \
    } \
  } while (0)
#define OF_TILES(name) (xnnpack_sys_tiles_repeat(convolution_op, mr) ? xnnpack_sys_##name : xnn_##name)
#define xnn_compute_igemm OF_TILES(compute_igemm)
#define xnn_compute_batch_igemm OF_TILES(compute_batch_igemm)
#define xnn_compute_dqigemm OF_TILES(compute_dqigemm)
#define xnn_compute_batch_dqigemm OF_TILES(compute_batch_dqigemm)
#define xnn_compute_dwconv_unipass xnnpack_sys_compute_dwconv_unipass
#define xnn_indirection_init_conv2d(...) POINT(xnnpack_sys_point_conv2d, mr)
#define xnn_indirection_init_dwconv2d(...) POINT(xnnpack_sys_point_dwconv2d, tile_size, step_height, step_width)

// XNNPACK takes memory for those of all rows before. A megabyte that is given back at once would have glibc keep as much
// of what is given back later.
#define xnn_reallocate_memory(memory, size) (xnn_reallocate_memory)(memory, XNNPACK_SYS_BYTES_##size)
#define XNNPACK_SYS_BYTES_indirection_buffer_size sizeof(struct xnnpack_sys_pointers)
#define XNNPACK_SYS_BYTES_batch_size batch_size

// Pointers written at each run would be those of all rows.
#undef XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER
#define XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER 0
#endif

#endif
