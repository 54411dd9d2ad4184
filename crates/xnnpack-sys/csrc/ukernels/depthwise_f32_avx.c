// Depthwise convolutions of fp32 with AVX, see `depthwise_f32_x86.h`.

#define ISA avx

#include "ukernels/depthwise_f32_x86.h"
