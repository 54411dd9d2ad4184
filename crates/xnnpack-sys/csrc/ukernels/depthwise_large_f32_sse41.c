// Depthwise convolutions of fp32 with large kernels and others, with SSE4.1, see `depthwise_large_f32.h`.

#define ISA sse41

// A whole block of weights. There are registers for twelve sums.
#define VECTORS 4
#define PIXELS 3

#include "ukernels/depthwise_large_f32.h"
