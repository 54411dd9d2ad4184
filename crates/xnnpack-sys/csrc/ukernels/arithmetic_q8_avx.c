// Sums of int8 with AVX, see `arithmetic_q8_x86.h`.

#define ISA avx
#define NARROW_VECTORS

#include "ukernels/arithmetic_q8_x86.h"
