// Matrix products of 8-bit integers for NEON without dot products, see `gemm_q8_neon.h`.

#define DOT 0
#define SUFFIX(rows) rows##x16__neon

#include "ukernels/gemm_q8_neon.h"
