// Means of windows of few floats, with AVX, see `pool_mean_f32.h`.

#define ISA avx

#include "ukernels/pool_mean_f32.h"
