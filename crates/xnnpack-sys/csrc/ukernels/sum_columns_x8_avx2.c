// Sums of the columns of 8-bit integers with AVX2, see `sum_columns_x8_x86.h`.

#define ISA avx2

#include "ukernels/sum_columns_x8_x86.h"
