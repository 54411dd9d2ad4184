// Matrix products with 4-bit weights in blocks with SSE4.1, see `gemm_qb4w_bytes.h`.

#define ISA sse41
#define ROWS QB4W_BYTES_ROWS

#include "ukernels/gemm_qb4w_bytes.h"

_Static_assert(CHANNELS == QB4W_SSE41_CHANNELS, "the tile");

MICROKERNEL(1, 1x8c4)
MICROKERNEL(ROWS, 4x8c4)
