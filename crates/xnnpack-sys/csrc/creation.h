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

// For convolutions with so many inputs at a position of the kernel, of uint8, and of int8 with so many output channels in a
// group and positions. XNNPACK goes on with the quotient of scales in single precision.
const struct xnn_gemm_config* xnnpack_sys_qu8_gemm_config_for(struct xnnpack_sys_rescaling rescaling, size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config_for(size_t outputs, size_t positions, size_t inputs);

// For fully connected layers, of uint8, of int8, and of rows quantized at run time.
const struct xnn_gemm_config* xnnpack_sys_qu8_rows_gemm_config(
    struct xnnpack_sys_rescaling rescaling, size_t inputs, size_t outputs);
const struct xnn_gemm_config* xnnpack_sys_qs8_rows_gemm_config(size_t inputs, size_t outputs);
const struct xnn_gemm_config* xnnpack_sys_qd8_rows_gemm_config(size_t inputs, size_t outputs);

// For convolutions of images quantized at run time; takes what is not XNNPACK's off the flags.
const struct xnn_gemm_config* xnnpack_sys_image_gemm_config(uint32_t* flags);

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_FULLY_CONNECTED
#define xnn_init_qu8_gemm_config() \
  xnnpack_sys_qu8_rows_gemm_config( \
      (struct xnnpack_sys_rescaling) { \
          .scale = (double) input_scale * (double) kernel_scale / (double) output_scale, .rounds = 1}, \
      input_channels, output_channels)
#define xnn_init_qs8_qc8w_gemm_config() xnnpack_sys_qs8_rows_gemm_config(input_channels, output_channels)
#define xnn_init_qd8_f32_qc8w_gemm_config() xnnpack_sys_qd8_rows_gemm_config(input_channels, output_channels)
#elif XNNPACK_SYS_CREATES
#define xnn_init_qu8_gemm_config() \
  xnnpack_sys_qu8_gemm_config_for( \
      (struct xnnpack_sys_rescaling) { \
          .scale = (double) (input_scale * kernel_scale) / (double) output_scale, .rounds = 2}, \
      group_input_channels)
#endif

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_CONVOLUTIONS
#define xnn_init_qs8_qc8w_gemm_config() \
  xnnpack_sys_qs8_gemm_config_for( \
      group_output_channels, (size_t) kernel_height * kernel_width, group_input_channels)
#define xnn_init_qd8_f32_qc8w_gemm_config() xnnpack_sys_image_gemm_config(&flags)
#endif

#endif
