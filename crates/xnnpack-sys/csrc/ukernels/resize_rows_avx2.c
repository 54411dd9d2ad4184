// Bilinear interpolation along one axis after the other, with AVX2, see `resize_rows_x86.h`.

#define ISA avx2

#include "ukernels/resize_rows_x86.h"
