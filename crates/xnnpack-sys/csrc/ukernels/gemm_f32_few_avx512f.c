// Matrix products and convolutions of floats with few channels, with AVX512F, see `gemm_f32_few.h`.

#define ISA avx512f
#define ROWS 8

#include "ukernels/gemm_f32_few.h"

MICROKERNELS(1, 1x2c16)
MICROKERNELS(ROWS, 8x2c16)
