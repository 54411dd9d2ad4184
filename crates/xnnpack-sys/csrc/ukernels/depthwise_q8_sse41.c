// Depthwise convolutions of 8-bit integers with SSE4.1, see `depthwise_q8_x86.h`.

#define ISA sse41

#include "ukernels/depthwise_q8_x86.h"
