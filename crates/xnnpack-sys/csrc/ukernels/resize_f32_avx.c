// Bilinear interpolation of floats, with AVX, see `resize_f32_x86.h`.

#define ISA avx

#include "ukernels/resize_f32_x86.h"
