// Matrix products and convolutions of floats with few channels, with SSE4.1, see `gemm_f32_few.h`.

#define ISA sse41
#define ROWS 4

#include "ukernels/gemm_f32_few.h"

MICROKERNELS(1, 1x2c4)
MICROKERNELS(ROWS, 4x2c4)
