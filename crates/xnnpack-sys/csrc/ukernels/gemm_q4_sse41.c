// Matrix products with 4-bit weights with SSE4.1, see `gemm_q4_bytes.h`.

#define ISA sse41
#define ROWS Q4_BYTES_ROWS

#include "ukernels/gemm_q4_bytes.h"

_Static_assert(CHANNELS == Q4_SSE41_CHANNELS, "the tile");

MICROKERNELS(1, 1x8c4)
MICROKERNELS(ROWS, 4x8c4)
