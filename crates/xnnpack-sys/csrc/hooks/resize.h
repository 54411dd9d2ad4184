// Pointers and weights of bilinear interpolation, for columns and rows of the output. XNNPACK keeps four pointers and two weights
// for each pixel: 2.6 MB for a mask of 257 x 257 pixels, written page by page at the start and read at each run.

#ifndef XNNPACK_SYS_RESIZE_H
#define XNNPACK_SYS_RESIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack.h"
#include "xnnpack/compute.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/operator.h"

// Shapes of an operator, as XNNPACK's functions that write pointers and weights take them.
struct xnnpack_sys_resize {
  size_t pixel_bytes;
  size_t input_height;
  size_t input_width;
  size_t output_height;
  size_t output_width;
  bool align_corners;
  bool legacy;
};

// Stores pointers and weights of columns and rows in the operator. `write` is XNNPACK's function for pixels. `input` is any address;
// offsets of the operator are relative to it. Returns false if there is no memory.
bool xnnpack_sys_point_resize(
    xnn_operator_t op, xnn_indirection_init_resize_bilinear2d_hwc_fn write, const void* input,
    struct xnnpack_sys_resize shapes, size_t log2_weight_bytes);

// XNNPACK's function that computes pixels, for these pointers and weights. `start` and `count` are whole rows.
void xnnpack_sys_compute_resize_bilinear(
    const struct resize_bilinear_context* context, size_t image, size_t start, size_t count);

#endif
