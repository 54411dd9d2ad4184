// Depthwise convolutions of fp32 with AVX2 and FMA, see `depthwise_f32_x86.h`.

#define ISA avx2

#include "ukernels/depthwise_f32_x86.h"
