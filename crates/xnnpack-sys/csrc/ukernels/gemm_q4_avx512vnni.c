// Matrix products with 4-bit weights with AVX512-VNNI, see `gemm_q4_bytes.h`.

#define ISA avx512vnni
#define ROWS Q4_AVX512_ROWS

#include "ukernels/gemm_q4_bytes.h"

_Static_assert(CHANNELS == Q4_AVX512_CHANNELS, "the tile");

MICROKERNELS(1, 1x32c4)
MICROKERNELS(ROWS, 8x32c4)
