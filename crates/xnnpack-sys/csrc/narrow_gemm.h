// Forced in front of XNNPACK's `fully-connected-nc.c`, see `narrow_gemm.c`.

#ifndef XNNPACK_SYS_NARROW_GEMM_H
#define XNNPACK_SYS_NARROW_GEMM_H

#include <stddef.h>

#include "xnnpack/config.h"

// For convolutions.
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config(void);

// For fully connected layers with so many output channels.
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config_for(size_t channels);

#define xnn_init_f32_gemm_nr2_config() xnnpack_sys_narrow_f32_gemm_config_for(output_channels)

#endif
