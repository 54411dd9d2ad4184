// Maximum of windows of 8-bit integers, with AVX512BW, see `pool_q8_x86.h`.

#define ISA avx512bw

#include "ukernels/pool_q8_x86.h"
