// Maximum of windows of 8-bit integers, with SSE4.1, see `pool_q8_x86.h`.

#define ISA sse41

#include "ukernels/pool_q8_x86.h"
