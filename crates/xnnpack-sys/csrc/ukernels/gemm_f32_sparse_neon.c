// Matrix products of floats with weights of which many are 0, with NEON.

#define ISA neon
#include "ukernels/gemm_f32_sparse.h"
