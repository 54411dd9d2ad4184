// Sines and cosines of floats, with AVX, see `sine_f32_vectors.h`.

#define ISA avx

#include "ukernels/sine_f32_vectors.h"
