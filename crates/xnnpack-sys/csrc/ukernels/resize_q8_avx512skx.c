// Bilinear interpolation of 8-bit integers, with AVX512, see `resize_q8_x86.h`.

#define ISA avx512skx

#include "ukernels/resize_q8_x86.h"

INTERPOLATION_OR(s8, true, xnnpack_sys_s8_ibilinear_ukernel__avx2)
INTERPOLATION_OR(u8, false, xnnpack_sys_u8_ibilinear_ukernel__avx2)
