// Means of windows of few floats, with SSE4.1, see `pool_mean_f32.h`.

#define ISA sse41

#include "ukernels/pool_mean_f32.h"
