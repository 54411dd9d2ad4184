// Copies of rows at a distance: slices, splits, concatenations, pads, and transpositions that keep the innermost dimension. XNNPACK
// calls memcpy for each row, and a function for each row of a slice. A call takes longer than the few vectors of a short row.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ukernels/copy_rows.h"

// Longer rows are worth a call of memcpy, which has vectors for the processor.
#define LONGEST 128

// The size of a vector that every processor copies at once.
#define VECTOR 16

// Bytes of a row that a thread takes at once if there are several threads.
#define BYTES_AT_ONCE 4096

// Bytes between the starts of neighbours, in the input and in the output.
struct strides {
  size_t input;
  size_t output;
};

// Rows, or several groups of them.
struct rows {
  const char* input;
  char* output;
  size_t count;
  struct strides next;
  size_t groups;
  struct strides next_group;
};

static inline void copy_long(const struct rows* rows, size_t bytes) {
  for (size_t group = 0; group < rows->groups; group++) {
    const char* from = rows->input + group * rows->next_group.input;
    char* to = rows->output + group * rows->next_group.output;
    for (size_t i = 0; i < rows->count; i++) {
      memcpy(to, from, bytes);
      from += rows->next.input;
      to += rows->next.output;
    }
  }
}

// Rows of more than half of `step` bytes: whole steps, and one that ends with the row.
static inline void copy_short(const struct rows* rows, size_t bytes, size_t step) {
  const size_t last = bytes - step;
  for (size_t group = 0; group < rows->groups; group++) {
    const char* from = rows->input + group * rows->next_group.input;
    char* to = rows->output + group * rows->next_group.output;
    for (size_t i = 0; i < rows->count; i++) {
      for (size_t at = 0; at < last; at += step) {
        memcpy(to + at, from + at, step);
      }
      memcpy(to + last, from + last, step);
      from += rows->next.input;
      to += rows->next.output;
    }
  }
}

// Memory of inputs and outputs does not overlap.
static inline void copy(struct rows rows, size_t bytes) {
  // The size of a step is a constant in each call, so that the compiler copies it with one instruction.
  if (bytes > LONGEST) {
    copy_long(&rows, bytes);
  } else if (bytes >= VECTOR) {
    copy_short(&rows, bytes, VECTOR);
  } else if (bytes >= 8) {
    copy_short(&rows, bytes, 8);
  } else if (bytes >= 4) {
    copy_short(&rows, bytes, 4);
  } else {
    copy_short(&rows, bytes, 1);
  }
}

void xnnpack_sys_compute_copied_rows(const struct univector_strided_context* context, size_t first, size_t rows) {
  const struct rows all = {
      .input = (const char*) context->x + first * context->x_stride,
      .output = (char*) context->y + first * context->y_stride,
      .count = rows,
      .next = {context->x_stride, context->y_stride},
      .groups = 1,
  };
  copy(all, context->n);
}

void xnnpack_sys_compute_sliced_groups(const struct slice_context* context, size_t group, size_t first, size_t rows) {
  const struct rows all = {
      .input = (const char*) context->input + group * context->input_stride[1] + first * context->input_stride[0],
      .output = (char*) context->output + group * context->output_stride[1] + first * context->output_stride[0],
      .count = rows,
      .next = {context->input_stride[0], context->output_stride[0]},
      .groups = 1,
  };
  copy(all, context->contiguous_size);
}

void xnnpack_sys_compute_sliced_rows(const struct slice_context* context, size_t first, size_t rows) {
  xnnpack_sys_compute_sliced_groups(context, 0, first, rows);
}

void xnnpack_sys_xx_transposev_ukernel(
    const void* input, void* output, size_t input_row_stride, size_t output_row_stride, size_t input_element_stride,
    size_t output_element_stride, size_t element_size, size_t block_width, size_t block_height)
{
  const struct strides along_width = {input_element_stride, output_row_stride};
  const struct strides along_height = {input_row_stride, output_element_stride};
  const bool wide = block_width > block_height;
  const struct rows all = {
      .input = input,
      .output = output,
      .count = wide ? block_width : block_height,
      .next = wide ? along_width : along_height,
      .groups = wide ? block_height : block_width,
      .next_group = wide ? along_height : along_width,
  };
  copy(all, element_size);
}

size_t xnnpack_sys_rows_at_once(size_t bytes, pthreadpool_t threads) {
  return pthreadpool_get_threads_count(threads) > 1 ? 1 + (BYTES_AT_ONCE - 1) / bytes : SIZE_MAX;
}

// Writes `bytes` in steps of `size`: whole ones, and one that ends with the last byte.
#define STEPS(size, source, next) \
  if (bytes >= (size)) { \
    for (size_t at = 0; at < bytes - (size); at += (size)) { \
      memcpy(to + at, (source) + (next) * at, size); \
    } \
    memcpy(to + bytes - (size), (source) + (next) * (bytes - (size)), size); \
    return; \
  }

// Repeats an element, of which `block` is full.
static inline void fill(char* to, size_t bytes, const char block[VECTOR]) {
  STEPS(VECTOR, block, 0)
  STEPS(8, block, 0)
  STEPS(4, block, 0)
  STEPS(2, block, 0)
  STEPS(1, block, 0)
}

static inline void copy_row(char* to, const char* from, size_t bytes) {
  if (bytes > LONGEST) {
    memcpy(to, from, bytes);
    return;
  }
  STEPS(VECTOR, from, 1)
  STEPS(8, from, 1)
  STEPS(4, from, 1)
  STEPS(2, from, 1)
  STEPS(1, from, 1)
}

void xnnpack_sys_pad(
    size_t rows, size_t bytes, size_t before, size_t after, const void* input, size_t input_stride, void* output,
    size_t output_stride, uint32_t pattern)
{
  char block[VECTOR];
  for (size_t at = 0; at < VECTOR; at += sizeof(pattern)) {
    memcpy(block + at, &pattern, sizeof(pattern));
  }
  for (size_t i = 0; i < rows; i++) {
    char* const to = (char*) output + i * output_stride;
    fill(to, before, block);
    copy_row(to + before, (const char*) input + i * input_stride, bytes);
    fill(to + before + bytes, after, block);
  }
}
