// Matrix products of 8-bit integers with AVX, see `gemm_q8_bytes.h`.

#define ISA avx
#define NARROW_VECTORS

#include "ukernels/gemm_q8_narrow.h"
