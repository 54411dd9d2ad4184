// Sines and cosines of floats, with AVX512F, see `sine_f32_vectors.h`.

#define ISA avx512f

#include "ukernels/sine_f32_vectors.h"
