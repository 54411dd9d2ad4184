// Put before XNNPACK's `fully-connected-nc.c` and `deconvolution-nhwc.c`, see `narrow_gemm.c`.

#ifndef XNNPACK_SYS_NARROW_GEMM_H
#define XNNPACK_SYS_NARROW_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "creation.h"
#include "xnnpack/config.h"

// For convolutions and transposed ones, see `choices_f32.c`.
const struct xnn_gemm_config* xnnpack_sys_f32_gemm_config(void);

// For convolutions with fewer channels than XNNPACK's tile is wide.
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config(void);

// For convolutions with so many inputs at a position and channels in a group.
const struct xnn_gemm_config* xnnpack_sys_conv_f32_gemm_config_for(size_t inputs, size_t channels);

// For fully connected layers; takes what is not XNNPACK's off the flags, see `choices_f32.c`.
const struct xnn_gemm_config* xnnpack_sys_fully_connected_f32_gemm_config(uint32_t* flags);

// For fully connected layers with so many output channels.
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config_for(size_t channels);

// For transposed convolutions with so many channels in a group.
const struct xnn_gemm_config* xnnpack_sys_transposed_f32_gemm_config_for(bool strided, size_t inputs, size_t outputs);

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_FULLY_CONNECTED
#define xnn_init_f32_gemm_config() xnnpack_sys_fully_connected_f32_gemm_config(&flags)
#define xnn_init_f32_gemm_nr2_config() xnnpack_sys_narrow_f32_gemm_config_for(output_channels)
#elif XNNPACK_SYS_CREATES == XNNPACK_SYS_CONVOLUTIONS
#define xnn_init_f32_gemm_config() \
  xnnpack_sys_conv_f32_gemm_config_for(group_input_channels, group_output_channels)
#define xnn_init_f32_gemm_nr2_config() xnnpack_sys_narrow_f32_gemm_config()
#elif XNNPACK_SYS_CREATES == XNNPACK_SYS_DECONVOLUTIONS
#define xnn_init_f32_gemm_config() xnnpack_sys_f32_gemm_config()
#define xnn_init_f32_gemm_nr2_config() \
  xnnpack_sys_transposed_f32_gemm_config_for( \
      stride_height > 1 || stride_width > 1, group_input_channels, group_output_channels)
#endif

#endif
