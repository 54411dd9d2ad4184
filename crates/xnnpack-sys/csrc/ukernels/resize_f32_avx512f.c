// Bilinear interpolation of floats, with AVX512F, see `resize_f32_x86.h`.

#define ISA avx512f

#include "ukernels/resize_f32_x86.h"
