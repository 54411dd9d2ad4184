// Linear functions of bytes, with SSE4.1, see `linear_x8_x86.h`.

#define ISA sse41

#include "ukernels/linear_x8_x86.h"
