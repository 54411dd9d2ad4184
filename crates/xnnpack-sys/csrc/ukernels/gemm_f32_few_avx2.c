// Matrix products and convolutions of floats with few channels, with AVX2, see `gemm_f32_few.h`.

#define ISA avx2
#define ROWS 4

#include "ukernels/gemm_f32_few.h"

MICROKERNELS(1, 1x2c8)
MICROKERNELS(ROWS, 4x2c8)
