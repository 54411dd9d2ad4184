// Depthwise convolutions of fp32 with large kernels, with NEON, see `depthwise_large_f32.h`.

#define ISA neon

// A whole block of weights. 16 sums and four weights leave a third of the registers for inputs.
#define VECTORS 4

#include "ukernels/depthwise_large_f32.h"
