// Sums of int8 with SSE4.1, see `sum_qs8_x86.h`.

#define ISA sse41

#include "ukernels/sum_qs8_x86.h"
