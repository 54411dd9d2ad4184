// Operators on uint8 with AVX, see `elementwise_qu8_x86.h`.

#define ISA avx
#define NARROW_VECTORS

#include "ukernels/elementwise_qu8_x86.h"
