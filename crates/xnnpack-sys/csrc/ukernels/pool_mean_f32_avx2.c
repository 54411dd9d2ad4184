// Means of windows of few floats, with AVX2, see `pool_mean_f32.h`.

#define ISA avx2

#include "ukernels/pool_mean_f32.h"
