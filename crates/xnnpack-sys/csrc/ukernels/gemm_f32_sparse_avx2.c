// Matrix products of floats with weights of which many are 0, with AVX2 and FMA.

#define ISA avx2
#include "ukernels/gemm_f32_sparse.h"
