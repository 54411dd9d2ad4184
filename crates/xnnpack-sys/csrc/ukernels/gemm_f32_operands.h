// Operands of matrix products of floats on x86-64.

#ifndef XNNPACK_SYS_GEMM_F32_OPERANDS_H
#define XNNPACK_SYS_GEMM_F32_OPERANDS_H

#include <stddef.h>
#include <stdint.h>

#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

// The rows of the input, for each position of a kernel.
struct input {
  const float* const* rows;
  size_t positions;
  // Floats of a row.
  size_t depth;
  // Added to addresses other than `zero`, in bytes.
  size_t offset;
  const float* zero;
};

struct output {
  float* at;
  // From row to row, and from one tile of channels to the next, in bytes.
  size_t row_stride;
  size_t tile_stride;
  vfloat min;
  vfloat max;
};

static XNN_INLINE float* further(float* from, size_t bytes) { return (float*) ((uintptr_t) from + bytes); }

// Defines `input` from the arguments of a microkernel for products, whose tile has `rows_of_tile` rows. Rows behind the last of `mr`
// repeat it.
#define GEMM_INPUT(rows_of_tile) \
  ASSERT_GEMM(rows_of_tile, sizeof(float)); \
  const float* from[rows_of_tile]; \
  _Pragma("GCC unroll 8") for (size_t row = 0; row < rows_of_tile; row++) { \
    from[row] = (const float*) ((uintptr_t) a + min(row, mr - 1) * a_stride); \
  } \
  const struct input input = {.rows = from, .positions = 1, .depth = kc / sizeof(float)}

// Defines `input` from the arguments of a microkernel for convolutions.
#define IGEMM_INPUT(rows_of_tile) \
  ASSERT_IGEMM(rows_of_tile, sizeof(float)); \
  const struct input input = { \
      .rows = a, .positions = ks / (rows_of_tile * sizeof(void*)), .depth = kc / sizeof(float), .offset = a_offset, \
      .zero = zero}

#endif
