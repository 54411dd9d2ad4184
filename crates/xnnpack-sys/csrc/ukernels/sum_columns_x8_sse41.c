// Sums of the columns of 8-bit integers with SSE4.1, see `sum_columns_x8_x86.h`.

#define ISA sse41

#include "ukernels/sum_columns_x8_x86.h"
