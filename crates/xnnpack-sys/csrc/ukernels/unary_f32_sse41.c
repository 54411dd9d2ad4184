// Functions of floats, with SSE4.1, see `unary_f32_x86.h`.

#define ISA sse41

#include "ukernels/unary_f32_x86.h"

#include "ukernels/gelu_f32_x86.h"
