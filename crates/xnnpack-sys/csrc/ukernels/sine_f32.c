// Sines and cosines of floats, with the instructions that every processor has, see `sine_f32_vectors.h`.

#define ISA vector

#include "ukernels/sine_f32_vectors.h"
