// Bilinear interpolation along one axis after the other, with AVX512, see `resize_rows_x86.h`.

#define ISA avx512skx

#include "ukernels/resize_rows_x86.h"
