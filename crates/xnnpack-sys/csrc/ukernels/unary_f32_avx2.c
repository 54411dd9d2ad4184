// Functions of floats, with AVX2, see `unary_f32_x86.h`.

#define ISA avx2

#include "ukernels/unary_f32_x86.h"

#include "ukernels/gelu_f32_x86.h"

#include "ukernels/softmax_f32_x86.h"
