// Operands of matrix products of floats on x86-64.

#ifndef XNNPACK_SYS_GEMM_F32_OPERANDS_H
#define XNNPACK_SYS_GEMM_F32_OPERANDS_H

#include <stddef.h>
#include <stdint.h>

#include "ukernels/vector_x86.h"
#include "xnnpack/common.h"

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

#endif
