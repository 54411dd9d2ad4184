// Transpositions of bytes with AVX512, see `transpose_x8_x86.h`.

#define ISA avx512skx
#define SMALLER xnnpack_sys_x8_transposec_ukernel__avx2

#include "ukernels/transpose_x8_x86.h"
