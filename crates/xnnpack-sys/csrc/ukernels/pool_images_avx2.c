// Maxima of whole images, with AVX2, see `pool_images.h`.

#define ISA avx2

#include "ukernels/pool_images.h"
