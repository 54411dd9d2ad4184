// Maxima of windows of few floats, with AVX512F, see `pool_max_f32.h`.

#define ISA avx512f

#include "ukernels/pool_max_f32.h"
