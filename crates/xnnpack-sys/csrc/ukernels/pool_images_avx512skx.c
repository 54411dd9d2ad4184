// Maxima of whole images, with AVX512, see `pool_images.h`.

#define ISA avx512skx

#include "ukernels/pool_images.h"
