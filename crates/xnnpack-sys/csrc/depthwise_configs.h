// Forced in front of XNNPACK's `convolution-nhwc.c`: how many configurations `xnnpack_sys_f32_depthwise_config` has.

#ifndef XNNPACK_SYS_DEPTHWISE_CONFIGS_H
#define XNNPACK_SYS_DEPTHWISE_CONFIGS_H

#include "xnnpack/config.h"

enum {
  XNNPACKS_F32_DEPTHWISE_CONFIGS = XNN_MAX_F32_DWCONV_UKERNELS,
  LARGE_F32_DEPTHWISE_CONFIGS = 5,
};

#undef XNN_MAX_F32_DWCONV_UKERNELS
#define XNN_MAX_F32_DWCONV_UKERNELS (XNNPACKS_F32_DEPTHWISE_CONFIGS + LARGE_F32_DEPTHWISE_CONFIGS)

#endif
