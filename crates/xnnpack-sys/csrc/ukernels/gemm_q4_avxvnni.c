// Matrix products with 4-bit weights with AVX-VNNI, see `gemm_q4_bytes.h`.

#define ISA avxvnni
#define ROWS Q4_BYTES_ROWS

#include "ukernels/gemm_q4_bytes.h"

_Static_assert(CHANNELS == Q4_AVX2_CHANNELS, "the tile");

MICROKERNELS(1, 1x16c4)
MICROKERNELS(ROWS, 4x16c4)
