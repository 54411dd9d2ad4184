// Bilinear interpolation of 8-bit integers, with AVX2, see `resize_q8_x86.h`.

#define ISA avx2

#include "ukernels/resize_q8_x86.h"

INTERPOLATION_OR(s8, true, xnn_s8_ibilinear_ukernel__sse41_c16)
INTERPOLATION_OR(u8, false, xnn_u8_ibilinear_ukernel__sse41_c16)
