// Sums and means over rows of floats with AVX512F, see `mean_f32_x86.h`.

#define ISA avx512f

#include "ukernels/mean_f32_x86.h"
