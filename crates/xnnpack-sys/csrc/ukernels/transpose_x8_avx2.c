// Transpositions of bytes with AVX2, see `transpose_x8_x86.h`.

#define ISA avx2
#define SMALLER xnn_x8_transposec_ukernel__16x16_reuse_mov_sse2

#include "ukernels/transpose_x8_x86.h"
