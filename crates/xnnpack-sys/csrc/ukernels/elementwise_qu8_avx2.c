// Operators on uint8 with AVX2, see `elementwise_qu8_x86.h`.

#define ISA avx2

#include "ukernels/elementwise_qu8_x86.h"
