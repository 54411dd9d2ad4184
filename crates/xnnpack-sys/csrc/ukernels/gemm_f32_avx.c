// Matrix products of floats with AVX, see `gemm_f32_x86.h`.

#define ISA avx

#include "ukernels/gemm_f32_x86.h"

MICROKERNELS(1, 8, 1)
MICROKERNELS(1, 16, 2)
MICROKERNELS(6, 16, 2)
MICROKERNELS(10, 8, 1)
