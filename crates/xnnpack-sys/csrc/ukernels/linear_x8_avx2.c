// Linear functions of bytes, with AVX2, see `linear_x8_x86.h`.

#define ISA avx2

#include "ukernels/linear_x8_x86.h"
