// Matrix products of floats with weights of which many are 0, with AVX.

#define ISA avx
#include "ukernels/gemm_f32_sparse.h"
