// Depthwise convolutions of 8-bit integers with AVX2, see `depthwise_q8_x86.h`.

#define ISA avx2

#include "ukernels/depthwise_q8_x86.h"
