// See `resize.h`. Microkernels get the pointers and weights that they get from XNNPACK, so that results are the same, except if a
// pixel to the right or below has a weight of 0: it may be NaN or infinite, and is replaced.

#include "hooks/resize.h"

#include <stdint.h>
#include <string.h>

#include "xnnpack/allocator.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

// Pixels whose weights are interleaved at once.
#define PIXELS 128
#define CORNERS 4

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

void xnnpack_sys_compute_resize_bilinear(
    const struct resize_bilinear_context* context, size_t image, size_t start, size_t count)
{
  const struct plan* const plan = (const struct plan*) context->indirect_input;
  const size_t log2_weight = context->log2_wsize - 1;
  XNN_ALIGN(64) char pairs[2 * PIXELS * MAX_WEIGHT_BYTES];
  uintptr_t output = (uintptr_t) context->output + start * context->output_pixel_stride + image * context->output_batch_stride;
  size_t y = start / plan->columns;
  size_t x = start % plan->columns;
  while (count != 0) {
    const size_t now = min(min(count, plan->columns - x), PIXELS);
    const char* const across = plan->across + (x << log2_weight);
    const char* const down = plan->down + (y << log2_weight);
    if (log2_weight == XNN_LOG2_SIZEOF_FLOAT) {
      pair(pairs, across, down, now, sizeof(float));
    } else {
      pair(pairs, across, down, now, sizeof(int16_t));
    }
    const struct row row = plan->rows[y];
    context->ukernel(
        now, context->scaled_channels, row.pointers + CORNERS * x,
        context->input_offset + image * context->input_batch_stride + row.offset, pairs, (void*) output,
        context->output_pixel_stride - context->scaled_channels);
    output += now * context->output_pixel_stride;
    count -= now;
    x += now;
    if (x == plan->columns) {
      x = 0;
      y++;
    }
  }
}
