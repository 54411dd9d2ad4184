// Tiles of fully connected layers with few rows.

#ifndef XNNPACK_SYS_FEW_ROWS_H
#define XNNPACK_SYS_FEW_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/operator.h"

// Rows of the smallest tile with a microkernel that holds `rows`, which are fewer than `most`.
static inline uint32_t xnnpack_sys_fewest_rows(size_t rows, uint32_t most, const struct xnn_hmp_gemm_ukernel* microkernels) {
  for (uint32_t tile = (uint32_t) rows; tile < most; tile++) {
    if (microkernels[tile - 1].function[XNN_UARCH_DEFAULT] != NULL) {
      return tile;
    }
  }
  return most;
}

#endif
