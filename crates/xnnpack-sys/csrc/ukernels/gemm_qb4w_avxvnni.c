// Matrix products with 4-bit weights in blocks with AVX-VNNI, see `gemm_qb4w_bytes.h`.

#define ISA avxvnni
#define ROWS QB4W_BYTES_ROWS

#include "ukernels/gemm_qb4w_bytes.h"

_Static_assert(CHANNELS == QB4W_AVX2_CHANNELS, "the tile");

MICROKERNEL(1, 1x16c4)
MICROKERNEL(ROWS, 4x16c4)
