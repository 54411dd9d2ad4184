// Which microkernels depthwise convolutions get: those of this crate (`depthwise.h`) where the processor can
// run them, XNNPACK's otherwise. `xnn_create_convolution2d_nhwc_*` asks here instead of XNNPACK.

#include <stddef.h>
#include <string.h>

#include "depthwise.h"
#include "xnnpack/common.h"
#include "xnnpack/config.h"
#include "xnnpack/hardware-config.h"
#include "xnnpack/init-once.h"
#include "xnnpack/microfnptr.h"

const struct xnn_dwconv_config* xnnpack_sys_f32_depthwise_config(void);
const struct xnn_dwconv_config* xnnpack_sys_qs8_depthwise_config(void);

#if XNN_ARCH_X86_64 && XNN_ENABLE_AVX512F

// Replaces the microkernels of 9 and of 25 weights.
static void replace(
    struct xnn_dwconv_config* configs, size_t count, xnn_dwconv_unipass_ukernel_fn of_9,
    xnn_dwconv_unipass_ukernel_fn of_25)
{
  for (size_t i = 0; i < count; i++) {
    struct xnn_dwconv_config* config = &configs[i];
    if (config->last_tile != 0 || (config->primary_tile != 9 && config->primary_tile != 25)) {
      continue;
    }
    config->minmax.unipass = config->primary_tile == 9 ? of_9 : of_25;
    config->linear.unipass = NULL;
    config->channel_tile = DEPTHWISE_LANES;
    config->channel_subtile = DEPTHWISE_LANES;
    config->channel_round = 1;
  }
}

static struct xnn_dwconv_config f32_configs[XNN_MAX_F32_DWCONV_UKERNELS];

XNN_INIT_ONCE_GUARD(f32);

static void init_f32_config(void) {
  memcpy(f32_configs, xnn_init_f32_dwconv_config(), sizeof(f32_configs));
  replace(
      f32_configs, XNN_MAX_F32_DWCONV_UKERNELS, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_9p16c,
      (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_25p16c);
}

#endif

const struct xnn_dwconv_config* xnnpack_sys_f32_depthwise_config(void) {
#if XNN_ARCH_X86_64 && XNN_ENABLE_AVX512F
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  if (hardware != NULL && hardware->use_x86_avx512f && xnn_init_f32_dwconv_config() != NULL) {
    XNN_INIT_ONCE(f32);
    return f32_configs;
  }
#endif
  return xnn_init_f32_dwconv_config();
}

#if XNN_ARCH_X86_64 && XNN_ENABLE_AVX512VNNI && XNN_ENABLE_AVX512VBMI

static struct xnn_dwconv_config qs8_configs[XNN_MAX_QC8_DWCONV_UKERNELS];

XNN_INIT_ONCE_GUARD(qs8);

static void init_qs8_config(void) {
  memcpy(qs8_configs, xnn_init_qs8_qc8w_dwconv_config(), sizeof(qs8_configs));
  replace(
      qs8_configs, XNN_MAX_QC8_DWCONV_UKERNELS, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_qs8_depthwise_9p16c,
      (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_qs8_depthwise_25p16c);
}

#endif

const struct xnn_dwconv_config* xnnpack_sys_qs8_depthwise_config(void) {
#if XNN_ARCH_X86_64 && XNN_ENABLE_AVX512VNNI && XNN_ENABLE_AVX512VBMI
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  if (hardware != NULL && hardware->use_x86_avx512vnni && hardware->use_x86_avx512vbmi &&
      xnn_init_qs8_qc8w_dwconv_config() != NULL) {
    XNN_INIT_ONCE(qs8);
    return qs8_configs;
  }
#endif
  return xnn_init_qs8_qc8w_dwconv_config();
}
