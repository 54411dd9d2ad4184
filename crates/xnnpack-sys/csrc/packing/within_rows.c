// Packing of 8-bit weights that reads no further than the weights.
//
// If the length of a row is not a multiple of 8, XNNPACK's microkernels read eight bytes at the end of each row, the last one
// included: up to seven of them behind the weights, which may be the end of a mapped file. XNNPACK's general functions
// pack in the same order without that.

#include "packing/within_rows.h"

#include "xnnpack/common.h"
#include "xnnpack/pack.h"
#include "xnnpack/packw.h"

#define WITHIN_ROWS(type, microkernel) \
  PACKS_WITHIN_ROWS(xnnpack_sys_##type##_packw_gemm_goi_##microkernel) { \
    if (kc % 8 == 0) { \
      xnn_##type##_packw_gemm_goi_ukernel_##microkernel( \
          g, nc, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params); \
    } else { \
      xnn_pack_##type##_gemm_goi_w(g, nc, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params); \
    } \
  }

#if XNN_ARCH_X86_64 && XNN_ENABLE_AVXVNNI
WITHIN_ROWS(qs8, x8c8__avxvnni)
WITHIN_ROWS(qs8, x8c8__avxvnni_prfm)
WITHIN_ROWS(qs8_to_qu8, x8c8__avxvnni)
#endif

#if XNN_ARCH_X86_64 && XNN_ENABLE_AVX256VNNI
WITHIN_ROWS(qs8, x8c8__avx256vnni_prfm)
WITHIN_ROWS(qs8, x16c8__avx256vnni_prfm)
WITHIN_ROWS(qs8_to_qu8, x16c8__avx256vnni)
#endif
