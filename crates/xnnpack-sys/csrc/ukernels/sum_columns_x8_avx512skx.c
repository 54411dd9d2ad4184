// Sums of the columns of 8-bit integers with AVX512, see `sum_columns_x8_x86.h`.

#define ISA avx512skx

#include "ukernels/sum_columns_x8_x86.h"
