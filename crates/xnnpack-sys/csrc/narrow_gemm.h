// Forced in front of XNNPACK's `fully-connected-nc.c` and `deconvolution-nhwc.c`, behind `creation.h`. See
// `narrow_gemm.c`.

#ifndef XNNPACK_SYS_NARROW_GEMM_H
#define XNNPACK_SYS_NARROW_GEMM_H

#include <stddef.h>

#include "creation.h"
#include "xnnpack/config.h"

// For convolutions.
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config(void);

// For other layers, with so many output channels.
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config_for(size_t channels);

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_FULLY_CONNECTED
#define xnn_init_f32_gemm_nr2_config() xnnpack_sys_narrow_f32_gemm_config_for(output_channels)
#elif XNNPACK_SYS_CREATES == XNNPACK_SYS_DECONVOLUTIONS
#define xnn_init_f32_gemm_nr2_config() xnnpack_sys_narrow_f32_gemm_config_for(group_output_channels)
#endif

#endif
