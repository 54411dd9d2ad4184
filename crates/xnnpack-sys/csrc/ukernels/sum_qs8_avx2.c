// Sums of int8 with AVX2, see `sum_qs8_x86.h`.

#define ISA avx2

#include "ukernels/sum_qs8_x86.h"
