// Depthwise convolutions of fp32 with large kernels and others, with AVX, see `depthwise_large_f32.h`.

#define ISA avx

#include "ukernels/depthwise_large_f32.h"
