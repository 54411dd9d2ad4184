// Products of few rows, or of small layers, with weights that are packed for AMX: `gemm_q8_amx.c` calls these functions of
// `gemm_q8.c`.

#ifndef XNNPACK_SYS_FEW_ROWS_Q8_H
#define XNNPACK_SYS_FEW_ROWS_Q8_H

#include "ukernels/amx.h"
#include "ukernels/q8.h"

// Address of an output.
struct place {
  uint8_t* at;
  // From row to row, and from one tile of channels to the next.
  size_t row_stride;
  size_t tile_stride;
};

struct output {
  struct place place;
  struct requantization requantization;
};

void xnnpack_sys_qu8_few_rows(
    size_t nc, const struct amx_input* rows, const void* weights, struct place to,
    const union xnn_qu8_conv_minmax_params* params);
void xnnpack_sys_qs8_few_rows(
    size_t nc, const struct amx_input* rows, const void* weights, struct place to,
    const union xnn_qs8_qc8w_conv_minmax_params* params);

#endif
