// Maxima of whole images, see `pool_images.h`.

#ifndef XNNPACK_SYS_POOL_IMAGES_API_H
#define XNNPACK_SYS_POOL_IMAGES_API_H

#include <stddef.h>

// Images and their pixels follow each other in memory. There is an output for each image and channel. `params` are the bounds of a
// pooling of the type.
#define IMAGE_MAX(name) \
  void name(size_t images, size_t pixels, size_t channels, const void* input, void* output, const void* params)

typedef IMAGE_MAX((*xnnpack_sys_image_max_fn));

// The second finds the maxima of negative elements: of -x, or of integers with all bits flipped.
#define IMAGE_MAXIMA_OF(type, isa) \
  IMAGE_MAX(xnnpack_sys_##type##_image_max_ukernel__##isa); \
  IMAGE_MAX(xnnpack_sys_##type##_image_max_of_negative_ukernel__##isa)

IMAGE_MAXIMA_OF(f32, sse41);
IMAGE_MAXIMA_OF(f32, avx);
IMAGE_MAXIMA_OF(f32, avx512skx);
IMAGE_MAXIMA_OF(s8, sse41);
IMAGE_MAXIMA_OF(s8, avx2);
IMAGE_MAXIMA_OF(u8, sse41);
IMAGE_MAXIMA_OF(u8, avx2);

// Every processor. One channel.
IMAGE_MAX(xnnpack_sys_s8_image_max_ukernel__rows);
IMAGE_MAX(xnnpack_sys_u8_image_max_ukernel__rows);

#endif
