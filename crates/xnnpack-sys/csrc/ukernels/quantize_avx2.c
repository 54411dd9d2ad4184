// Quantization at run time, with AVX2, see `quantize_x86.h`.

#define ISA avx2

#include "ukernels/quantize_x86.h"
