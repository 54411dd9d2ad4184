// Operators on uint8 with SSE4.1, see `elementwise_qu8_x86.h`.

#define ISA sse41

#include "ukernels/elementwise_qu8_x86.h"
