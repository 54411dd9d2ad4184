// Matrix products of 8-bit integers with AVX-VNNI, see `gemm_q8_bytes.h`.

#define ISA avxvnni
#define ROWS Q8_AVX2_ROWS

#include "ukernels/gemm_q8_bytes.h"

_Static_assert(CHANNELS == Q8_AVX2_CHANNELS, "the tile");

MICROKERNELS(1, 1x16c4)
MICROKERNELS(ROWS, 4x16c4)
DYNAMIC_MICROKERNELS(1, 1x16c4)
DYNAMIC_MICROKERNELS(ROWS, 4x16c4)
