// Depthwise convolutions of fp32 with SSE4.1, see `depthwise_f32_x86.h`.

#define ISA sse41

#include "ukernels/depthwise_f32_x86.h"
