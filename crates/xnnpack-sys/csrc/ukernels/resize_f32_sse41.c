// Bilinear interpolation of floats, with SSE4.1, see `resize_f32_x86.h`.

#define ISA sse41

#include "ukernels/resize_f32_x86.h"
