// Maxima of whole images, with AVX, see `pool_images.h`.

#define ISA avx

#include "ukernels/pool_images.h"
