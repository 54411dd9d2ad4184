// Microkernels of maximum poolings of 8-bit integers, and of those whose windows are whole images, see `operators.h`.

#include "config/config.h"

#include "ukernels/pool_images_api.h"
#include "ukernels/pool_q8.h"

#if XNN_ARCH_X86_64

#if AVX512VNNI
#define WITH_AVX512VNNI(microkernel, otherwise) (has_avx512vnni() ? microkernel : otherwise)
#else
#define WITH_AVX512VNNI(microkernel, otherwise) otherwise
#endif

#define CHOOSE_MAXPOOL(type) \
  type##_maxpool_configs[0].ukernel = (xnn_maxpool_ukernel_fn) WITH_AVX512VNNI( \
      xnnpack_sys_##type##_maxpool_minmax_ukernel__avx512bw, \
      (has_avx2() ? xnnpack_sys_##type##_maxpool_minmax_ukernel__avx2 : xnnpack_sys_##type##_maxpool_minmax_ukernel__sse41))

CHOICE(s8_maxpool, xnn_maxpool_config, 1, xnn_init_s8_maxpool_config, has_sse41(), CHOOSE_MAXPOOL(s8))
CHOICE(u8_maxpool, xnn_maxpool_config, 1, xnn_init_u8_maxpool_config, has_sse41(), CHOOSE_MAXPOOL(u8))

#if AVX512SKX
#define WITH_AVX512SKX(microkernel, otherwise) has_avx512skx() ? microkernel : otherwise
#else
#define WITH_AVX512SKX(microkernel, otherwise) otherwise
#endif

#define IMAGE_MAX_OF_BYTES(type) \
  (has_avx2() ? xnnpack_sys_##type##_image_max_ukernel__avx2 : xnnpack_sys_##type##_image_max_ukernel__sse41)
#define IMAGE_MAX_OF_FLOATS (has_avx() ? xnnpack_sys_f32_image_max_ukernel__avx : xnnpack_sys_f32_image_max_ukernel__sse41)

xnnpack_sys_image_max_fn xnnpack_sys_image_max_function(enum xnn_operator_type type, size_t channels) {
  if (!has_sse41()) {
    return NULL;
  }
  switch (type) {
    case xnn_operator_type_max_pooling_nhwc_f32:
      return WITH_AVX512SKX(xnnpack_sys_f32_image_max_ukernel__avx512skx, IMAGE_MAX_OF_FLOATS);
    case xnn_operator_type_max_pooling_nhwc_s8: return IMAGE_MAX_OF_BYTES(s8);
    case xnn_operator_type_max_pooling_nhwc_u8: return IMAGE_MAX_OF_BYTES(u8);
    default: return NULL;
  }
}

#else

NO_CHOICE(s8_maxpool, xnn_maxpool_config, xnn_init_s8_maxpool_config)
NO_CHOICE(u8_maxpool, xnn_maxpool_config, xnn_init_u8_maxpool_config)

xnnpack_sys_image_max_fn xnnpack_sys_image_max_function(enum xnn_operator_type type, size_t channels) {
  if (channels != 1) {
    return NULL;
  }
  switch (type) {
    case xnn_operator_type_max_pooling_nhwc_s8: return xnnpack_sys_s8_image_max_ukernel__rows;
    case xnn_operator_type_max_pooling_nhwc_u8: return xnnpack_sys_u8_image_max_ukernel__rows;
    default: return NULL;
  }
}

#endif
