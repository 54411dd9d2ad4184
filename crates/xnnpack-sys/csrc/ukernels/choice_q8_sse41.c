// Maxima and minima of 8-bit integers, with SSE4.1, see `choice_q8_x86.h`.

#define ISA sse41

#include "ukernels/choice_q8_x86.h"
