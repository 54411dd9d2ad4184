// Put before files of XNNPACK that create operators with 8-bit weights: when they ask for microkernels, what they know of
// the layer is passed on, by the names that they have for it. XNNPACK_SYS_CREATES says which operators a file creates.

#ifndef XNNPACK_SYS_CREATION_H
#define XNNPACK_SYS_CREATION_H

#include <stddef.h>
#include <stdint.h>
#include <stdint.h>

#include "xnnpack/config.h"
#include "xnnpack/microparams.h"

#define XNNPACK_SYS_CONVOLUTIONS 1
#define XNNPACK_SYS_DECONVOLUTIONS 2
#define XNNPACK_SYS_FULLY_CONNECTED 3

// How TFLite's reference kernels bring sums to the output's scale.
struct xnnpack_sys_rescaling {
  double scale;
  // Once, or twice as `fixed_point.h` has it.
  int rounds;
};

// For a layer of uint8. XNNPACK goes on with the quotient of scales in single precision.
const struct xnn_gemm_config* xnnpack_sys_qu8_gemm_config_for(struct xnnpack_sys_rescaling rescaling);

// For fully connected layers of int8.
const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config(void);

// For convolutions of int8 with so many output channels in a group, each the sum of so many products.
const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config_for(size_t outputs, size_t products);

// For convolutions of images quantized at run time; takes what is not XNNPACK's off the flags.
const struct xnn_gemm_config* xnnpack_sys_image_gemm_config(uint32_t* flags);

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_FULLY_CONNECTED
#define xnn_init_qu8_gemm_config() \
  xnnpack_sys_qu8_gemm_config_for((struct xnnpack_sys_rescaling) { \
      .scale = (double) input_scale * (double) kernel_scale / (double) output_scale, .rounds = 1})
#define xnn_init_qs8_qc8w_gemm_config() xnnpack_sys_qs8_gemm_config()
#elif XNNPACK_SYS_CREATES
#define xnn_init_qu8_gemm_config() \
  xnnpack_sys_qu8_gemm_config_for((struct xnnpack_sys_rescaling) { \
      .scale = (double) (input_scale * kernel_scale) / (double) output_scale, .rounds = 2})
#endif

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_CONVOLUTIONS
#define xnn_init_qs8_qc8w_gemm_config() \
  xnnpack_sys_qs8_gemm_config_for(group_output_channels, kernel_height * kernel_width * group_input_channels)
#define xnn_init_qd8_f32_qc8w_gemm_config() xnnpack_sys_image_gemm_config(&flags)
#endif

#endif
