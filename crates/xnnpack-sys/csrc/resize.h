// Put before XNNPACK's `resize-bilinear-nhwc.c`: pointers into the input and weights are kept for columns and rows of the
// output. XNNPACK keeps four pointers and two weights for each pixel: for a mask of 257 x 257 pixels 2.6 MB, written page
// by page at the start and read at each run.

#ifndef XNNPACK_SYS_RESIZE_H
#define XNNPACK_SYS_RESIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack.h"
#include "xnnpack/compute.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/operator.h"

// The shapes of an operator, as XNNPACK's functions that write pointers and weights take them.
struct xnnpack_sys_resize {
  size_t pixel_bytes;
  size_t input_height;
  size_t input_width;
  size_t output_height;
  size_t output_width;
  bool align_corners;
  bool legacy;
};

// Writes what there is to keep, in the place of pointers and weights of all pixels; what XNNPACK's function `write` would
// say of each. `input` is any address, and that which offsets are from later. False if there is no memory.
bool xnnpack_sys_point_resize(
    xnn_operator_t op, xnn_indirection_init_resize_bilinear2d_hwc_fn write, const void* input,
    struct xnnpack_sys_resize shapes, size_t log2_weight_bytes);

// In the place of XNNPACK's function that computes pixels.
void xnnpack_sys_compute_resize_bilinear(
    const struct resize_bilinear_context* context, size_t image, size_t start, size_t count);

#ifdef XNNPACK_SYS_RESIZES
#define indirection_init(...) \
  do { \
    const struct xnnpack_sys_resize shapes = { \
        .pixel_bytes = input_pixel_stride_in_bytes, \
        .input_height = input_height, \
        .input_width = input_width, \
        .output_height = output_height, \
        .output_width = output_width, \
        .align_corners = (flags & XNN_FLAG_ALIGN_CORNERS) != 0, \
        .legacy = (flags & XNN_FLAG_TENSORFLOW_LEGACY_MODE) != 0, \
    }; \
    if (!xnnpack_sys_point_resize(resize_op, indirection_init, dummy_input, shapes, log2_weight_element_size)) { \
      return xnn_status_out_of_memory; \
    } \
  } while (0)

// Pointers written at each run would be those of all pixels.
#undef XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER
#define XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER 0
#endif

#endif
