// Sines and cosines of floats, with AVX2, see `sine_f32_vectors.h`.

#define ISA avx2

#include "ukernels/sine_f32_vectors.h"
