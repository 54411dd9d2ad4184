// Inputs of microkernels for matrix products and convolutions of 8-bit integers.

#ifndef XNNPACK_SYS_INPUT_ROWS_H
#define XNNPACK_SYS_INPUT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/common.h"

struct input {
  // Addresses of rows, for one position after another. Rows behind the last of `mr` repeat it.
  const uint8_t* const* rows;
  size_t rows_of_position;
  size_t positions;
  // Bytes of a row at a position.
  size_t depth;
  // Added to addresses other than `zero`, which is replaced by `padding`.
  size_t offset;
  const uint8_t* zero;
  const uint8_t* padding;
};

static XNN_INLINE const uint8_t* address_of(const struct input* input, const uint8_t* row) {
  return row == input->zero ? input->padding : row + input->offset;
}

static XNN_INLINE const uint8_t* row_at(const struct input* input, size_t i) { return address_of(input, input->rows[i]); }

#endif
