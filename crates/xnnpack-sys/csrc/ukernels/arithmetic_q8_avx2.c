// Sums of int8, and products of 8-bit integers, with AVX2, see `arithmetic_q8_x86.h`.

#define ISA avx2

#include "ukernels/arithmetic_q8_x86.h"
