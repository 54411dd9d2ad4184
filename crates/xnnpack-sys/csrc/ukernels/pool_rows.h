// Windows of poolings that are rows of neighbouring elements.

#ifndef XNNPACK_SYS_POOL_ROWS_H
#define XNNPACK_SYS_POOL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/common.h"

// Whether a window is a row of more than one element. Addresses are those of one column of the window after the other, at equal
// steps, or steps of 0 beyond the image.
static XNN_INLINE bool is_row(const void** input, size_t length, size_t channels, size_t element_size) {
  const uintptr_t first = (uintptr_t) input[0];
  return channels == 1 && length > 1 && (uintptr_t) input[1] == first + element_size &&
      (uintptr_t) input[length - 1] == first + (length - 1) * element_size;
}

#endif
