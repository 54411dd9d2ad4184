// Depthwise convolutions of fp32 with large kernels and others, with AVX2 and FMA, see `depthwise_large_f32.h`.

#define ISA avx2

#include "ukernels/depthwise_large_f32.h"
