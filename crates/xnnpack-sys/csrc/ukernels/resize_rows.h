// Microkernels for bilinear interpolation along one axis after the other, see `resize_rows_x86.h`: across a row of pixels to sums,
// and down between two rows of sums, which are floats for floats, and 32-bit integers for 8-bit integers.

#ifndef XNNPACK_SYS_RESIZE_ROWS_H
#define XNNPACK_SYS_RESIZE_ROWS_H

#include <stddef.h>
#include <stdint.h>

// Computes `pixels` of `channels` bytes each. `corners` has four addresses for each, of which the first two are the pixels to the left
// and to the right, and `weights` the weight of the right one.
#define RESIZE_ACROSS(name) \
  void name( \
      size_t pixels, size_t channels, const void* const* corners, size_t input_offset, const void* weights, void* sums)

// Computes `count` elements. `weight` is that of the sums below.
#define RESIZE_DOWN(name) void name(size_t count, const void* above, const void* below, const void* weight, void* output)

struct xnnpack_sys_resize_rows {
  RESIZE_ACROSS((*across));
  RESIZE_DOWN((*down));
};

#define RESIZE_ROWS(isa) \
  RESIZE_ACROSS(xnnpack_sys_f32_resize_across_ukernel__##isa); \
  RESIZE_ACROSS(xnnpack_sys_s8_resize_across_ukernel__##isa); \
  RESIZE_ACROSS(xnnpack_sys_u8_resize_across_ukernel__##isa); \
  RESIZE_DOWN(xnnpack_sys_f32_resize_down_ukernel__##isa); \
  RESIZE_DOWN(xnnpack_sys_x8_resize_down_ukernel__##isa)

RESIZE_ROWS(sse41);
RESIZE_ROWS(avx2);
RESIZE_ROWS(avx512skx);

#endif
