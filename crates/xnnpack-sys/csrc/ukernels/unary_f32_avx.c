// Functions of floats, with AVX, see `unary_f32_x86.h`.

#define ISA avx

#include "ukernels/unary_f32_x86.h"
