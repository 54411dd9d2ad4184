// Matrix products and convolutions of floats with few channels, with AVX, see `gemm_f32_few.h`.

#define ISA avx
#define ROWS 4

#include "ukernels/gemm_f32_few.h"

MICROKERNELS(1, 1x2c8)
MICROKERNELS(ROWS, 4x2c8)
