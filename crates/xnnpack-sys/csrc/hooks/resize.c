// See `resize.h`. Microkernels get the pointers and weights that they get from XNNPACK, so that results are the same, except if a
// pixel to the right or below has a weight of 0: it may be NaN or infinite, and is replaced.

#include "hooks/resize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "config/operators.h"
#include "ukernels/resize_rows.h"
#include "xnnpack/allocator.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

// Pixels whose weights are interleaved at once.
#define PIXELS 128
#define CORNERS 4

// Sums of a row of the input that are kept for the rows of the output beside it.
#define SUMS 2048

// Pixels with fewer bytes do not fill the vectors of microkernels that compute pixel by pixel.
#define FEW_BYTES 16

// Size of the largest type of weights.
#define MAX_WEIGHT_BYTES sizeof(float)

struct row {
  // Added to pointers for the pixels of this row, in bytes.
  size_t offset;
  // Four for each column, relative to the upper row of pixels: two in the upper row and two in the next, or those of the upper row
  // twice if the next row has a weight of 0.
  const void** pointers;
};

struct plan {
  size_t columns;
  // Compute along one axis after the other; NULL if pixels are computed one by one.
  const struct xnnpack_sys_resize_rows* by_rows;
  // A weight for each column and for each row: the distance from the pixel to the left or above.
  const char* across;
  const char* down;
  // Rows, two sets of pointers for columns, and weights follow in memory.
  struct row rows[];
};

// Calls `write` for row `y` of an output with `columns` columns.
static void write_row(
    xnn_indirection_init_resize_bilinear2d_hwc_fn write, size_t y, size_t columns, const void* input,
    struct xnnpack_sys_resize shapes, const void** pointers, char* weights, size_t weight)
{
  // `write` writes to where the row is behind all rows before it.
  write(
      y, y + 1, shapes.pixel_bytes, shapes.input_height, shapes.input_width, shapes.output_height, columns, input,
      (const void**) ((uintptr_t) pointers - y * columns * CORNERS * sizeof(void*)),
      (void*) ((uintptr_t) weights - y * 2 * columns * weight), shapes.align_corners, shapes.legacy);
}

static bool is_zero(const char* weight, size_t size) {
  static const char zero[MAX_WEIGHT_BYTES];
  return memcmp(weight, zero, size) == 0;
}

bool xnnpack_sys_point_resize(
    xnn_operator_t op, xnn_indirection_init_resize_bilinear2d_hwc_fn write, const void* input,
    struct xnnpack_sys_resize shapes, size_t log2_weight_bytes)
{
  const size_t height = shapes.output_height;
  const size_t width = shapes.output_width;
  const size_t weight = (size_t) 1 << log2_weight_bytes;
  const size_t pointers_size = CORNERS * width * sizeof(void*);
  const size_t rows_size = sizeof(struct plan) + height * sizeof(struct row);
  const size_t kept = rows_size + 2 * pointers_size + (width + height) * weight;
  // Scratch memory for a whole row as XNNPACK writes it, behind the rest.
  const size_t scratch_start = round_up_po2(kept, sizeof(void*));

  // XNNPACK has allocated these for all pixels, and not written them.
  xnn_release_memory((void*) op->indirection_buffer);
  xnn_release_simd_memory(op->packed_weights.pointer);
  op->packed_weights.pointer = NULL;
  struct plan* plan = xnn_allocate_memory(scratch_start + pointers_size + 2 * width * weight);
  op->indirection_buffer = (const void**) plan;
  if (plan == NULL) {
    // Otherwise the next image of this size would pass for one whose plan exists.
    op->last_input_height = 0;
    op->last_output_height = 0;
    return false;
  }
  const void** const pointers = (const void**) ((uintptr_t) plan + rows_size);
  char* const across = (char*) (pointers + 2 * CORNERS * width);
  char* const down = across + width * weight;
  const void** const scratch = (const void**) ((uintptr_t) plan + scratch_start);
  char* const scratch_weights = (char*) (scratch + CORNERS * width);
  plan->columns = width;
  const bool is_worth_it = height > shapes.input_height || shapes.pixel_bytes < FEW_BYTES;
  plan->by_rows = is_worth_it ? xnnpack_sys_resize_rows_config(op->type) : NULL;
  plan->across = across;
  plan->down = down;

  bool is_written[2] = {false, false};
  uintptr_t first = 0;
  for (size_t y = 0; y < height; y++) {
    // The first column tells what kind of row this is.
    const void* corners[CORNERS];
    XNN_ALIGN(MAX_WEIGHT_BYTES) char pixel[2 * MAX_WEIGHT_BYTES];
    write_row(write, y, 1, input, shapes, corners, pixel, weight);
    if (y == 0) {
      first = (uintptr_t) corners[0];
    }
    memcpy(down + y * weight, pixel + weight, weight);
    const size_t offset = (uintptr_t) corners[0] - first;
    const size_t kind = corners[2] != corners[0] && !is_zero(pixel + weight, weight);
    const void** const of_kind = pointers + kind * CORNERS * width;
    if (!is_written[kind]) {
      write_row(write, y, width, input, shapes, scratch, scratch_weights, weight);
      for (size_t i = 0; i < CORNERS * width; i++) {
        of_kind[i] = (const void*) ((uintptr_t) scratch[i] - offset);
      }
      for (size_t x = 0; x < width; x++) {
        memcpy(across + x * weight, scratch_weights + 2 * x * weight, weight);
        const void** const of_column = of_kind + CORNERS * x;
        if (is_zero(across + x * weight, weight)) {
          of_column[1] = of_column[0];
          of_column[3] = of_column[2];
        }
        if (kind == 0) {
          of_column[2] = of_column[0];
          of_column[3] = of_column[1];
        }
      }
      is_written[kind] = true;
    }
    plan->rows[y] = (struct row) {.offset = offset, .pointers = of_kind};
  }
  return true;
}

// Interleaves the weights of neighbouring pixels of a row.
static XNN_INLINE void pair(char* pairs, const char* across, const char* down, size_t count, size_t weight) {
  for (size_t i = 0; i < count; i++) {
    memcpy(pairs + 2 * i * weight, across + i * weight, weight);
    memcpy(pairs + (2 * i + 1) * weight, down, weight);
  }
}

// Computes a row of the output pixel by pixel.
static void compute_pixels(const struct resize_bilinear_context* context, size_t y, size_t input_offset, uintptr_t output) {
  const struct plan* const plan = (const struct plan*) context->indirect_input;
  const size_t log2_weight = context->log2_wsize - 1;
  const struct row row = plan->rows[y];
  const char* const down = plan->down + (y << log2_weight);
  XNN_ALIGN(64) char pairs[2 * PIXELS * MAX_WEIGHT_BYTES];
  for (size_t x = 0; x < plan->columns; x += PIXELS) {
    const size_t now = min(plan->columns - x, PIXELS);
    const char* const across = plan->across + (x << log2_weight);
    if (log2_weight == XNN_LOG2_SIZEOF_FLOAT) {
      pair(pairs, across, down, now, sizeof(float));
    } else {
      pair(pairs, across, down, now, sizeof(int16_t));
    }
    context->ukernel(
        now, context->scaled_channels, row.pointers + CORNERS * x, input_offset + row.offset, pairs, (void*) output,
        context->output_pixel_stride - context->scaled_channels);
    output += now * context->output_pixel_stride;
  }
}

// Sums of some columns of a row of the input.
struct sums {
  // The address of the first pixel; 0 at the start.
  uintptr_t first;
  XNN_ALIGN(64) int32_t values[SUMS];
};

// Computes sums unless they are there. `corners` starts with the pixels to the left and to the right of the first column.
static XNN_INLINE void sum_across(
    const struct resize_bilinear_context* context, size_t columns, const void* const* corners, size_t input_offset,
    const char* weights, struct sums* sums)
{
  const uintptr_t first = (uintptr_t) corners[0] + input_offset;
  if (sums->first != first) {
    const struct plan* const plan = (const struct plan*) context->indirect_input;
    plan->by_rows->across(columns, context->scaled_channels, corners, input_offset, weights, sums->values);
    sums->first = first;
  }
}

// Computes as many columns as `SUMS` are for, of each row.
static void compute_rows(
    const struct resize_bilinear_context* context, size_t start, size_t count, size_t input_offset, uintptr_t output)
{
  const struct plan* const plan = (const struct plan*) context->indirect_input;
  const size_t log2_weight = context->log2_wsize - 1;
  const size_t log2_element = log2_weight == XNN_LOG2_SIZEOF_FLOAT ? XNN_LOG2_SIZEOF_FLOAT : 0;
  const size_t channels = context->scaled_channels >> log2_element;
  struct sums kept[2];
  for (size_t x = 0; x < plan->columns; x += SUMS / channels) {
    const size_t columns = min(plan->columns - x, SUMS / channels);
    const char* const across = plan->across + (x << log2_weight);
    struct sums* above = &kept[0];
    struct sums* below = &kept[1];
    above->first = below->first = 0;
    for (size_t y = start; y < start + count; y++) {
      const struct row row = plan->rows[y];
      const void* const* const corners = row.pointers + CORNERS * x;
      const size_t offset = input_offset + row.offset;
      if (below->first == (uintptr_t) corners[0] + offset) {
        struct sums* const next = above;
        above = below;
        below = next;
      }
      sum_across(context, columns, corners, offset, across, above);
      const bool is_between = corners[2] != corners[0];
      if (is_between) {
        sum_across(context, columns, corners + 2, offset, across, below);
      }
      plan->by_rows->down(
          columns * channels, above->values, is_between ? below->values : above->values, plan->down + (y << log2_weight),
          (void*) (output + ((y - start) * plan->columns + x) * context->output_pixel_stride));
    }
  }
}

void xnnpack_sys_compute_resize_bilinear(
    const struct resize_bilinear_context* context, size_t image, size_t start, size_t count)
{
  const struct plan* const plan = (const struct plan*) context->indirect_input;
  const size_t input_offset = context->input_offset + image * context->input_batch_stride;
  const uintptr_t output = (uintptr_t) context->output + start * context->output_pixel_stride + image * context->output_batch_stride;
  const size_t first = start / plan->columns;
  const size_t rows = count / plan->columns;
  if (plan->by_rows != NULL && context->output_pixel_stride == context->scaled_channels && context->scaled_channels <= SUMS) {
    compute_rows(context, first, rows, input_offset, output);
    return;
  }
  for (size_t y = 0; y < rows; y++) {
    compute_pixels(
        context, first + y, input_offset, output + y * plan->columns * context->output_pixel_stride);
  }
}
