// Bilinear interpolation along one axis after the other, with SSE4.1, see `resize_rows_x86.h`.

#define ISA sse41

#include "ukernels/resize_rows_x86.h"
