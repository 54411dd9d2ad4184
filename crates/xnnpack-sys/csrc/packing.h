// Put before the file of XNNPACK that chooses microkernels for matrix products.
//
// Where a row's length is no multiple of 8, XNNPACK's microkernels that pack 8-bit weights for dot products read eight
// bytes at the end of each row, the last one included: up to seven of them behind the weights, which may be the end of a
// mapped file. XNNPACK's general functions pack in the same order, and read what is there.

#ifndef XNNPACK_SYS_PACKING_H
#define XNNPACK_SYS_PACKING_H

#include "xnnpack/common.h"
#include "xnnpack/pack.h"
#include "xnnpack/packw.h"

#define WITHIN(type, microkernel) \
  XNN_INLINE static void within_##type##_##microkernel( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b, \
      const float* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params) { \
    if (kc % 8 == 0) { \
      xnn_##type##_packw_gemm_goi_ukernel_##microkernel( \
          g, nc, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params); \
    } else { \
      xnn_pack_##type##_gemm_goi_w(g, nc, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params); \
    } \
  }

#if XNN_ARCH_X86 || XNN_ARCH_X86_64
WITHIN(qs8, x8c8__avxvnni)
#define xnn_qs8_packw_gemm_goi_ukernel_x8c8__avxvnni within_qs8_x8c8__avxvnni
WITHIN(qs8, x8c8__avxvnni_prfm)
#define xnn_qs8_packw_gemm_goi_ukernel_x8c8__avxvnni_prfm within_qs8_x8c8__avxvnni_prfm
WITHIN(qs8_to_qu8, x8c8__avxvnni)
#define xnn_qs8_to_qu8_packw_gemm_goi_ukernel_x8c8__avxvnni within_qs8_to_qu8_x8c8__avxvnni
WITHIN(qs8, x8c8__avx256vnni_prfm)
#define xnn_qs8_packw_gemm_goi_ukernel_x8c8__avx256vnni_prfm within_qs8_x8c8__avx256vnni_prfm
WITHIN(qs8, x16c8__avx256vnni_prfm)
#define xnn_qs8_packw_gemm_goi_ukernel_x16c8__avx256vnni_prfm within_qs8_x16c8__avx256vnni_prfm
WITHIN(qs8_to_qu8, x16c8__avx256vnni)
#define xnn_qs8_to_qu8_packw_gemm_goi_ukernel_x16c8__avx256vnni within_qs8_to_qu8_x16c8__avx256vnni
#endif

#endif
