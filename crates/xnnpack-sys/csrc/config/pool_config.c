// Microkernels of maximum poolings and bilinear interpolations of 8-bit integers, and of maximum poolings whose windows are whole
// images, see `operators.h`.

#include "config/config.h"

#include "ukernels/pool_images_api.h"
#include "ukernels/pool_q8.h"
#include "ukernels/resize_q8.h"
#include "ukernels/resize_rows.h"

#if XNN_ARCH_X86_64

#if AVX512VNNI
#define WITH_AVX512VNNI(microkernel, otherwise) (has_avx512vnni() ? microkernel : otherwise)
#else
#define WITH_AVX512VNNI(microkernel, otherwise) otherwise
#endif

#define CHOOSE_MAXPOOL(type) \
  type##_maxpool_configs[0].ukernel = (xnn_maxpool_ukernel_fn) WITH_AVX512VNNI( \
      xnnpack_sys_##type##_maxpool_minmax_ukernel__avx512bw, \
      BASE_UKERNEL(xnnpack_sys_##type##_maxpool_minmax_ukernel))

CHOICE(s8_maxpool, xnn_maxpool_config, 1, xnn_init_s8_maxpool_config, has_sse41(), CHOOSE_MAXPOOL(s8))
CHOICE(u8_maxpool, xnn_maxpool_config, 1, xnn_init_u8_maxpool_config, has_sse41(), CHOOSE_MAXPOOL(u8))

#define CHOOSE_IBILINEAR(type) \
  type##_ibilinear_configs[0].ukernel = (xnn_ibilinear_ukernel_fn) WIDE_UKERNEL(xnnpack_sys_##type##_ibilinear_ukernel)

CHOICE(s8_ibilinear, xnn_ibilinear_config, 1, xnn_init_s8_ibilinear_config, has_avx2(), CHOOSE_IBILINEAR(s8))
CHOICE(u8_ibilinear, xnn_ibilinear_config, 1, xnn_init_u8_ibilinear_config, has_avx2(), CHOOSE_IBILINEAR(u8))

#define RESIZE_ROWS_OF(type, element, isa) \
  {xnnpack_sys_##type##_resize_across_ukernel__##isa, xnnpack_sys_##element##_resize_down_ukernel__##isa}
#define RESIZE_ROWS_WITH(isa) RESIZE_ROWS_OF(f32, f32, isa), RESIZE_ROWS_OF(s8, x8, isa), RESIZE_ROWS_OF(u8, x8, isa)

const struct xnnpack_sys_resize_rows* xnnpack_sys_resize_rows_config(enum xnn_operator_type type) {
  static const struct xnnpack_sys_resize_rows rows__sse41[] = {RESIZE_ROWS_WITH(sse41)};
  static const struct xnnpack_sys_resize_rows rows__avx2[] = {RESIZE_ROWS_WITH(avx2)};
#if AVX512SKX
  static const struct xnnpack_sys_resize_rows rows__avx512skx[] = {RESIZE_ROWS_WITH(avx512skx)};
#endif
  const struct xnnpack_sys_resize_rows* rows = WITH_AVX512SKX(rows__avx512skx, BASE_UKERNEL(rows));
  if (!has_sse41()) {
    return NULL;
  }
  switch (type) {
    case xnn_operator_type_resize_bilinear_nhwc_f32: return &rows[0];
    case xnn_operator_type_resize_bilinear_nhwc_s8: return &rows[1];
    case xnn_operator_type_resize_bilinear_nhwc_u8: return &rows[2];
    default: return NULL;
  }
}

#define CHOOSE_IMAGE_MAX(name) \
  switch (type) { \
    case xnn_operator_type_max_pooling_nhwc_f32: \
      return WITH_AVX512SKX( \
          xnnpack_sys_f32_##name##_ukernel__avx512skx, \
          (has_avx() ? xnnpack_sys_f32_##name##_ukernel__avx : xnnpack_sys_f32_##name##_ukernel__sse41)); \
    case xnn_operator_type_max_pooling_nhwc_s8: return BASE_UKERNEL(xnnpack_sys_s8_##name##_ukernel); \
    case xnn_operator_type_max_pooling_nhwc_u8: return BASE_UKERNEL(xnnpack_sys_u8_##name##_ukernel); \
    default: return NULL; \
  }

xnnpack_sys_image_max_fn xnnpack_sys_image_max_function(
    enum xnn_operator_type type, size_t channels, bool of_negative)
{
  if (!has_sse41()) {
    return NULL;
  }
  if (of_negative) {
    CHOOSE_IMAGE_MAX(image_max_of_negative)
  }
  CHOOSE_IMAGE_MAX(image_max)
}

#else

NO_CHOICE(s8_maxpool, xnn_maxpool_config, xnn_init_s8_maxpool_config)
NO_CHOICE(u8_maxpool, xnn_maxpool_config, xnn_init_u8_maxpool_config)
NO_CHOICE(s8_ibilinear, xnn_ibilinear_config, xnn_init_s8_ibilinear_config)
NO_CHOICE(u8_ibilinear, xnn_ibilinear_config, xnn_init_u8_ibilinear_config)

const struct xnnpack_sys_resize_rows* xnnpack_sys_resize_rows_config(enum xnn_operator_type type) {
  (void) type;
  return NULL;
}

xnnpack_sys_image_max_fn xnnpack_sys_image_max_function(
    enum xnn_operator_type type, size_t channels, bool of_negative)
{
  if (channels != 1 || of_negative) {
    return NULL;
  }
  switch (type) {
    case xnn_operator_type_max_pooling_nhwc_s8: return xnnpack_sys_s8_image_max_ukernel__rows;
    case xnn_operator_type_max_pooling_nhwc_u8: return xnnpack_sys_u8_image_max_ukernel__rows;
    default: return NULL;
  }
}

#endif
