// Depthwise convolutions of 8-bit integers with AVX, see `depthwise_q8_x86.h`.

#define ISA avx
#define NARROW_VECTORS

#include "ukernels/depthwise_q8_x86.h"
