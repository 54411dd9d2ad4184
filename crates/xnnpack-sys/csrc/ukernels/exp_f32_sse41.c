// Exponential function of floats, with SSE4.1, see `exp_f32_x86.h`.

#define ISA sse41

#include "ukernels/exp_f32_x86.h"
