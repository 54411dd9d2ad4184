// Matrix products of 8-bit integers with AVX512 without VNNI, see `gemm_q8_bytes.h`.

#define ISA avx512skx
#define ROWS Q8_AVX512_ROWS

#include "ukernels/gemm_q8_bytes.h"

_Static_assert(CHANNELS == Q8_AVX512_CHANNELS, "the tile");

MICROKERNELS(1, 1x32c4)
MICROKERNELS(ROWS, 8x32c4)
DYNAMIC_MICROKERNELS(1, 1x32c4)
DYNAMIC_MICROKERNELS(ROWS, 8x32c4)
PLAIN_MICROKERNELS(1, 1x32c4)
PLAIN_MICROKERNELS(ROWS, 8x32c4)
