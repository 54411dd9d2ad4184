// Copies of rows, see `copy_rows.c`.

#ifndef XNNPACK_SYS_COPY_ROWS_H
#define XNNPACK_SYS_COPY_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <pthreadpool.h>

#include "xnnpack/compute.h"

// Replaces `xnn_compute_univector_strided` for copies.
void xnnpack_sys_compute_copied_rows(const struct univector_strided_context* context, size_t first, size_t rows);

// Replace `xnn_compute_slice_1d` and `xnn_compute_slice_2d`, for several rows at once.
void xnnpack_sys_compute_sliced_rows(const struct slice_context* context, size_t first, size_t rows);
void xnnpack_sys_compute_sliced_groups(
    const struct slice_context* context, size_t group, size_t first, size_t rows);

// A microkernel of XNNPACK's type for transpositions of elements of any size: column j of row i of the output, `output_row_stride` and
// `output_element_stride` apart, is row j and column i of the input.
void xnnpack_sys_xx_transposev_ukernel(
    const void* input, void* output, size_t input_row_stride, size_t output_row_stride, size_t input_element_stride,
    size_t output_element_stride, size_t element_size, size_t block_width, size_t block_height);

// The number of rows of this many bytes that a thread takes at once.
size_t xnnpack_sys_rows_at_once(size_t bytes, pthreadpool_t threads);

// A microkernel of XNNPACK's type for pads: copies rows between borders.
void xnnpack_sys_pad(
    size_t rows, size_t bytes, size_t before, size_t after, const void* input, size_t input_stride, void* output,
    size_t output_stride, uint32_t pattern);

#endif
