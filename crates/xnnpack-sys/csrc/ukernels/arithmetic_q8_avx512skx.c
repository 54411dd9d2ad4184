// Sums of int8, and products of 8-bit integers, with AVX512, see `arithmetic_q8_x86.h`.

#define ISA avx512skx

#include "ukernels/arithmetic_q8_x86.h"
