// Maxima of whole images, with SSE4.1, see `pool_images.h`.

#define ISA sse41

#include "ukernels/pool_images.h"
