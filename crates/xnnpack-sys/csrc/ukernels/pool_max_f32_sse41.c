// Maxima of windows of few floats, with SSE4.1, see `pool_max_f32.h`.

#define ISA sse41

#include "ukernels/pool_max_f32.h"
