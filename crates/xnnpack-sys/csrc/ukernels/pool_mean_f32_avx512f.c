// Means of windows of few floats, with AVX512F, see `pool_mean_f32.h`.

#define ISA avx512f

#include "ukernels/pool_mean_f32.h"
