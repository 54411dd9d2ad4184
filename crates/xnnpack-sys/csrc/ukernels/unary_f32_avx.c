// Functions of floats with AVX, see `unary_f32_x86.h`, and the square root, for AVX2 too.

#define ISA avx

#include "ukernels/unary_f32_x86.h"

#include "ukernels/gelu_f32_x86.h"

#include "ukernels/softmax_f32_x86.h"

static XNN_INLINE vfloat root(vfloat x) { return VINT(sqrt_ps, x); }

UNARY_OF_VECTORS(vsqrt, root)
