// Depthwise convolutions of 8-bit integers with AVX512BW, see `depthwise_q8_x86.h`.

#define ISA avx512skx

#include "ukernels/depthwise_q8_x86.h"
