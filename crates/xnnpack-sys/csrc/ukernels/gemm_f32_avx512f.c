// Matrix products of floats with AVX512F, see `gemm_f32_x86.h`.

#define ISA avx512f

#include "ukernels/gemm_f32_x86.h"

MICROKERNELS(1, 16, 1)
MICROKERNELS(1, 32, 2)
MICROKERNELS(7, 32, 2)

F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_4x32__avx512f) { GEMM(FLOAT, 4, 2); }

F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_8x32__avx512f) { GEMM(FLOAT, 8, 2); }

F32_F16W_GEMM(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_1x32__avx512f) { GEMM(HALF, 1, 2); }

F32_F16W_GEMM(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_4x32__avx512f) { GEMM(HALF, 4, 2); }

F32_F16W_GEMM(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_8x32__avx512f) { GEMM(HALF, 8, 2); }
