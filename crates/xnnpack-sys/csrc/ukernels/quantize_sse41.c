// Quantization at run time, with SSE4.1, see `quantize_x86.h`.

#define ISA sse41

#include "ukernels/quantize_x86.h"
