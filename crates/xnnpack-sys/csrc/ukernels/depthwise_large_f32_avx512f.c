// Depthwise convolutions of fp32 with large kernels and others, with AVX512F, see `depthwise_large_f32.h`.

#define ISA avx512f

#include "ukernels/depthwise_large_f32.h"
