// Maximum of windows of 8-bit integers, with AVX2, see `pool_q8_x86.h`.

#define ISA avx2

#include "ukernels/pool_q8_x86.h"
