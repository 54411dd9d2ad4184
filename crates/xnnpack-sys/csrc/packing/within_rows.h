// XNNPACK's microkernels that pack 8-bit weights for dot products, for rows of any length; see `within_rows.c`.

#ifndef XNNPACK_SYS_WITHIN_ROWS_H
#define XNNPACK_SYS_WITHIN_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/pack.h"

#define PACKS_WITHIN_ROWS(name) \
  void name( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b, \
      const float* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)

PACKS_WITHIN_ROWS(xnnpack_sys_qs8_packw_gemm_goi_x8c8__avxvnni);
PACKS_WITHIN_ROWS(xnnpack_sys_qs8_packw_gemm_goi_x8c8__avxvnni_prfm);
PACKS_WITHIN_ROWS(xnnpack_sys_qs8_to_qu8_packw_gemm_goi_x8c8__avxvnni);
PACKS_WITHIN_ROWS(xnnpack_sys_qs8_packw_gemm_goi_x8c8__avx256vnni_prfm);
PACKS_WITHIN_ROWS(xnnpack_sys_qs8_packw_gemm_goi_x16c8__avx256vnni_prfm);
PACKS_WITHIN_ROWS(xnnpack_sys_qs8_to_qu8_packw_gemm_goi_x16c8__avx256vnni);

#endif
