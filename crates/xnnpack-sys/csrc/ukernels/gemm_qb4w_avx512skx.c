// Matrix products with 4-bit weights in blocks with AVX512 without VNNI, see `gemm_qb4w_bytes.h`.

#define ISA avx512skx
#define ROWS QB4W_AVX512_ROWS

#include "ukernels/gemm_qb4w_bytes.h"

_Static_assert(CHANNELS == QB4W_AVX512_CHANNELS, "the tile");

MICROKERNEL(1, 1x32c4)
MICROKERNEL(ROWS, 8x32c4)
