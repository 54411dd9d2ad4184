// Matrix products of 8-bit integers for NEON with dot products, see `gemm_q8_neon.h`.

#define DOT 1
#define SUFFIX(rows) rows##x16c4__neondot

#include "ukernels/gemm_q8_neon.h"
