// Sums and means over rows of floats with AVX, see `mean_f32_x86.h`.

#define ISA avx

#include "ukernels/mean_f32_x86.h"
