// Maxima of windows of few floats, with AVX, see `pool_max_f32.h`.

#define ISA avx

#include "ukernels/pool_max_f32.h"
