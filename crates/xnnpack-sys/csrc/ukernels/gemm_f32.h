// Microkernels for matrix products of floats: rows, channels of a tile, and inputs that it takes at a time. AVX512F, AVX2 and AVX
// (`gemm_f32_x86.h`), and SSE4.1 (`gemm_f32_sse41.c`).

#ifndef XNNPACK_SYS_GEMM_F32_H
#define XNNPACK_SYS_GEMM_F32_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"

// Inputs of a position that are multiplied in a step with AVX512F. With fewer inputs most of the work is on pointers to rows, for
// which GCC finds more registers in XNNPACK's microkernels.
#define F32_GEMM_STEP 4

#define F32_GEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, const float* a, size_t a_stride, const float* w, float* c, size_t cm_stride, \
      size_t cn_stride, const union xnn_f32_minmax_params* params)

// fp16 weights and fp32 biases.
#define F32_F16W_GEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, const float* a, size_t a_stride, const void* w, float* c, size_t cm_stride, \
      size_t cn_stride, const union xnn_f32_minmax_params* params)

#define F32_IGEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, size_t ks, const float** a, const float* w, float* c, size_t cm_stride, \
      size_t cn_stride, size_t a_offset, const float* zero, const union xnn_f32_minmax_params* params)

#define F32_PRODUCTS(tile) \
  F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_##tile); \
  F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_##tile)

F32_PRODUCTS(1x16__avx512f);
F32_PRODUCTS(1x32__avx512f);
F32_PRODUCTS(7x32__avx512f);
F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_4x32__avx512f);
F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_8x32__avx512f);
F32_F16W_GEMM(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_1x32__avx512f);
F32_F16W_GEMM(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_4x32__avx512f);
F32_F16W_GEMM(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_8x32__avx512f);

F32_PRODUCTS(1x8__avx2);
F32_PRODUCTS(10x8__avx2);
F32_PRODUCTS(1x16__avx2);
F32_PRODUCTS(6x16__avx2);

F32_PRODUCTS(1x8__avx);
F32_PRODUCTS(10x8__avx);
F32_PRODUCTS(1x16__avx);
F32_PRODUCTS(6x16__avx);

F32_PRODUCTS(1x4c2__sse41);
F32_PRODUCTS(4x4c2__sse41);

// Few channels (`gemm_f32_few.h`).
F32_PRODUCTS(1x2c16__avx512f);
F32_PRODUCTS(8x2c16__avx512f);
F32_PRODUCTS(1x2c8__avx2);
F32_PRODUCTS(4x2c8__avx2);
F32_PRODUCTS(1x2c8__avx);
F32_PRODUCTS(4x2c8__avx);
F32_PRODUCTS(1x2c4__sse41);
F32_PRODUCTS(4x2c4__sse41);
#define F32_FEW_CHANNELS 2

// SME: tiles of rows and channels for its length of vectors (`sme.h`). The others compute with NEON, and are for single rows, and for
// callers that use SME themselves (`gemm_f32_sme_rows.c`).
F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel__sme);
F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel__sme);
F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_rows__sme);
F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_rows__sme);
F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_1__sme);

// Inputs that the microkernels for SSE4.1 take at a time, and channels of their tile.
#define F32_PAIRS_LOG2_STEP 1
#define F32_PAIRS_STEP (1 << F32_PAIRS_LOG2_STEP)
#define F32_PAIRS_CHANNELS 4

// Packs weights for SME, see `pack_f32_sme.c`.
void xnnpack_sys_pack_f32_goi__sme(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, float* packed, size_t extra_bytes, const void* params);

// Pack weights for SSE4.1, see `pack_f32.c`; `stride` floats are between the weights of two inputs.
void xnnpack_sys_pack_f32_pairs_goi(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, float* packed, size_t extra_bytes, const void* params);
void xnnpack_sys_pack_f32_pairs_gio(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, size_t stride, const float* weights,
    const float* bias, const void* scale, float* packed, size_t extra_bytes, const void* params);

// Packs fp32 weights that are exact in fp16, see `pack_f16w.c`.
void xnnpack_sys_pack_f32_f16w_goi_x32(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, void* packed, size_t extra_bytes, const void* params);

#endif
