// Maxima of whole images, see `pool_images.h`.

#ifndef XNNPACK_SYS_POOL_IMAGES_API_H
#define XNNPACK_SYS_POOL_IMAGES_API_H

#include <stddef.h>

// Images and their pixels follow each other in memory. There is an output for each image and channel. `params` are the bounds of a
// pooling of the type.
#define IMAGE_MAX(name) \
  void name(size_t images, size_t pixels, size_t channels, const void* input, void* output, const void* params)

typedef IMAGE_MAX((*xnnpack_sys_image_max_fn));

IMAGE_MAX(xnnpack_sys_f32_image_max_ukernel__sse41);
IMAGE_MAX(xnnpack_sys_f32_image_max_ukernel__avx);
IMAGE_MAX(xnnpack_sys_f32_image_max_ukernel__avx512skx);
IMAGE_MAX(xnnpack_sys_s8_image_max_ukernel__sse41);
IMAGE_MAX(xnnpack_sys_s8_image_max_ukernel__avx2);
IMAGE_MAX(xnnpack_sys_u8_image_max_ukernel__sse41);
IMAGE_MAX(xnnpack_sys_u8_image_max_ukernel__avx2);

// Every processor. One channel.
IMAGE_MAX(xnnpack_sys_s8_image_max_ukernel__rows);
IMAGE_MAX(xnnpack_sys_u8_image_max_ukernel__rows);

#endif
