// Maxima and minima of 8-bit integers, with AVX2, see `choice_q8_x86.h`.

#define ISA avx2

#include "ukernels/choice_q8_x86.h"
