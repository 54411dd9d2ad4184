// Matrix products of 8-bit integers with SSE4.1, see `gemm_q8_bytes.h`.

#define ISA sse41

#include "ukernels/gemm_q8_narrow.h"
