// Products of few rows, or of small layers, with weights as they are packed for AMX: `gemm_q8.c` has them for `gemm_q8_amx.c`.

#ifndef XNNPACK_SYS_FEW_ROWS_Q8_H
#define XNNPACK_SYS_FEW_ROWS_Q8_H

#include "amx.h"
#include "q8.h"

// Where outputs go.
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
