// Microkernels for depthwise convolutions, in place of XNNPACK's of the same tiles.
//
// XNNPACK's microkernels load all inputs and all weights of an output from memory. Where the kernel moves
// by less than its width, neighbouring outputs share input columns, and all outputs share the weights: these
// microkernels keep both in registers. Inputs meet weights in the same order, so that results are the same
// bit for bit. Weights are packed the same way too.
//
// Arguments are those of `xnn_dwconv_unipass_ukernel_fn`: for each output the addresses of its inputs, column by column; those of
// the next output are `input_stride` bytes on. If that is less than a whole kernel, the addresses of shared columns are stored
// once.

#ifndef XNNPACK_SYS_DEPTHWISE_H
#define XNNPACK_SYS_DEPTHWISE_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"

// Channels that share a block of packed weights.
#define DEPTHWISE_LANES 16

#define DEPTHWISE_KERNEL(name, element, weight, params_type) \
  void name( \
      size_t channels, size_t output_width, const element** input, const weight* weights, element* output, \
      intptr_t input_stride, size_t output_increment, size_t input_offset, const element* zero, \
      const union params_type* params)

#define F32_DEPTHWISE(name) DEPTHWISE_KERNEL(name, float, float, xnn_f32_minmax_params)
#define QS8_DEPTHWISE(name) DEPTHWISE_KERNEL(name, int8_t, void, xnn_qs8_qc8w_conv_minmax_params)
#define QU8_DEPTHWISE(name) DEPTHWISE_KERNEL(name, uint8_t, void, xnn_qu8_conv_minmax_params)

// Kernels of 3x3 and 5x5, or of fewer weights.
#define SMALL_F32_DEPTHWISE(isa) \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_9p16c__##isa); \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_25p16c__##isa)

SMALL_F32_DEPTHWISE(avx512f);
SMALL_F32_DEPTHWISE(avx2);
SMALL_F32_DEPTHWISE(avx);
SMALL_F32_DEPTHWISE(sse41);

// For outputs that share few inputs or none.
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_9p16c__avx512f);
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_9p16c__avx2);
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_9p16c__avx);
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_25p16c__avx512f);
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_25p16c__avx2);
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_25p16c__avx);
F32_DEPTHWISE(xnnpack_sys_f32_separate_dwconv_minmax_ukernel_25p16c__sse41);

// Kernels of 7x7, 9x9, 11x11, 13x13 and 15x15, or of fewer weights.
#define LARGE_F32_DEPTHWISE(isa) \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_49p16c__##isa); \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_81p16c__##isa); \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_121p16c__##isa); \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_169p16c__##isa); \
  F32_DEPTHWISE(xnnpack_sys_f32_dwconv_minmax_ukernel_225p16c__##isa)

LARGE_F32_DEPTHWISE(avx512f);
LARGE_F32_DEPTHWISE(avx2);
LARGE_F32_DEPTHWISE(avx);
LARGE_F32_DEPTHWISE(sse41);
LARGE_F32_DEPTHWISE(neon);

// int8 inputs, and a scale for each channel. AVX512 with VNNI and VBMI.
QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_9p16c__avx512vnni);
QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_25p16c__avx512vnni);

// int8 and uint8 with AVX512BW, AVX2 and SSE4.1.
#define Q8_DEPTHWISE_OF(taps, isa) \
  QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_##taps##p16c__##isa); \
  QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p16c__##isa)

#define Q8_DEPTHWISE(isa) \
  Q8_DEPTHWISE_OF(9, isa); \
  Q8_DEPTHWISE_OF(25, isa)

Q8_DEPTHWISE(avx512skx);
Q8_DEPTHWISE(avx2);
Q8_DEPTHWISE(sse41);
Q8_DEPTHWISE(avx);

// Large kernels, with NEON, too.
#define LARGE_Q8_DEPTHWISE(isa) \
  Q8_DEPTHWISE_OF(49, isa); \
  Q8_DEPTHWISE_OF(81, isa); \
  Q8_DEPTHWISE_OF(121, isa); \
  Q8_DEPTHWISE_OF(169, isa); \
  Q8_DEPTHWISE_OF(225, isa)

LARGE_Q8_DEPTHWISE(avx512skx);
LARGE_Q8_DEPTHWISE(avx2);
LARGE_Q8_DEPTHWISE(sse41);
LARGE_Q8_DEPTHWISE(avx);
LARGE_Q8_DEPTHWISE(neon);

// uint8 inputs and weights, and one scale and zero point for all channels. AVX512 with VNNI and VBMI.
QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_9p16c__avx512vnni);
QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_25p16c__avx512vnni);

// int8 inputs quantized at run time and fp32 outputs, scaled as in TFLite's reference kernels. AVX512 with VNNI and VBMI.
struct xnnpack_sys_qd8_depthwise_params {
  // Quantization of the input.
  int32_t zero_point;
  float scale;
  // Bounds of the output.
  float min;
  float max;
};

#define QD8_DEPTHWISE(name) \
  void name( \
      size_t channels, size_t output_width, const int8_t** input, const void* weights, float* output, \
      intptr_t input_stride, size_t output_increment, size_t input_offset, const int8_t* zero, \
      const struct xnnpack_sys_qd8_depthwise_params* params)

// Packed weights are those of int8, with fp32 biases.
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__avx512vnni);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__avx512vnni);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__avx512skx);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__avx512skx);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__avx2);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__avx2);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__sse41);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__sse41);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__avx);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__avx);

#endif
