// Operators on uint8 with AVX512, see `elementwise_qu8_x86.h`.

#define ISA avx512skx

#include "ukernels/elementwise_qu8_x86.h"
