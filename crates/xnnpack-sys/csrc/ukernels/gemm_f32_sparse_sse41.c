// Matrix products of floats with weights of which many are 0, with SSE4.1.

#define ISA sse41
#include "ukernels/gemm_f32_sparse.h"
