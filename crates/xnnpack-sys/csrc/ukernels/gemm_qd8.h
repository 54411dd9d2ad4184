// Microkernels for matrix products of rows, and convolutions of images, quantized at run time, see `gemm_qd8.c` and
// `conv_qd8.c`.

#ifndef XNNPACK_SYS_GEMM_QD8_H
#define XNNPACK_SYS_GEMM_QD8_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"

// The tile: rows of the input and channels of the output that are computed at once, and inputs that one instruction multiplies.
#define QC8W_GEMM_ROWS 8
#define QC8W_GEMM_FEW_ROWS 4
#define QB4W_GEMM_ROWS 6
#define QD8_GEMM_CHANNELS 32
#define QD8_GEMM_LOG2_DEPTH 2

// The tile of convolutions, with as many channels.
#define QD8_CONV_ROWS 6
#define QD8_CONV_LOG2_DEPTH 3

#define QD8_GEMM(name, params_type) \
  void name( \
      size_t mr, size_t nc, size_t kc, const int8_t* a, size_t a_stride, const void* w, float* c, size_t cm_stride, \
      size_t cn_stride, const params_type* params, const struct xnn_qd8_quantization_params* quantization_params)

#define QC8W_GEMM(name) QD8_GEMM(name, union xnn_f32_minmax_params)
#define QB4W_GEMM(name) QD8_GEMM(name, struct xnn_f32_qb4w_minmax_params)

#define QC4W_GEMM(name) QD8_GEMM(name, struct xnn_f32_qc4w_minmax_params)

#define QC8W_IGEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, size_t ks, const int8_t** a, const void* w, float* c, size_t cm_stride, \
      size_t cn_stride, size_t a_offset, const int8_t* zero, const int8_t* zero_data, \
      const union xnn_f32_minmax_params* params, const struct xnn_qd8_quantization_params* quantization_params)

// int8 weights with a scale for each channel. AVX512 with VNNI and GFNI, as the following. Weights are packed as by
// `xnn_pack_qs8_gemm_goi_w`, with 128 added.
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_1x32c4__avx512vnnigfni);
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_4x32c4__avx512vnnigfni);
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_8x32c4__avx512vnnigfni);

// Convolutions, with weights packed as by `xnn_pack_qs8_conv_goki_w`; `qdu8`: inputs are unsigned, and zero points are 128 more.
QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_1x32c8__avx512vnnigfni);
QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_6x32c8__avx512vnnigfni);
QC8W_IGEMM(xnnpack_sys_qdu8_f32_qc8w_igemm_minmax_ukernel_1x32c8__avx512vnnigfni);
QC8W_IGEMM(xnnpack_sys_qdu8_f32_qc8w_igemm_minmax_ukernel_6x32c8__avx512vnnigfni);

// Microkernels with AMX (`gemm_qd8_amx.c`), for up to 32 rows or the number in the name, of signed
// inputs.
#define QD8_AMX_ROWS 32
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_32x32c4__avx512amx);
QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_1x32c4__avx512amx);
QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_16x32c4__avx512amx);
QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_25x32c4__avx512amx);
QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_32x32c4__avx512amx);

// 4-bit weights with a scale for each channel, packed as by `xnn_pack_qs8_qc4w_gemm_goi_w`: two planes of four inputs.
QC4W_GEMM(xnnpack_sys_qd8_f32_qc4w_gemm_minmax_ukernel_32x32c4__avx512amx);

// Packs weights of convolutions for tiles of 32 channels and eight inputs, for inputs with 128 added. AVX512 with VNNI.
void xnnpack_sys_pack_qd8_goki_32c8(
    size_t groups, size_t channels, size_t positions, size_t depth, const int8_t* weights, void* packed,
    size_t extra_bytes);

// 4-bit weights with a scale for each block, packed as by `xnn_pack_qs8_qb4w_gemm_goi_w`.
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_1x32c4__avx512vnnigfni);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_6x32c4__avx512vnnigfni);

#endif
