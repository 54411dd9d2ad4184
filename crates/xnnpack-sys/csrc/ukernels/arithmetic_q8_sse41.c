// Sums of int8 with SSE4.1, see `arithmetic_q8_x86.h`.

#define ISA sse41

#include "ukernels/arithmetic_q8_x86.h"
