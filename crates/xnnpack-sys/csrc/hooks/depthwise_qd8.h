// Depthwise convolutions of inputs quantized at run time, see `depthwise_qd8.c`.

#ifndef XNNPACK_SYS_DEPTHWISE_QD8_H
#define XNNPACK_SYS_DEPTHWISE_QD8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/depthwise.h"
#include "xnnpack.h"
#include "xnnpack/microfnptr.h"

// The most weights of a channel for which there are microkernels.
#define QD8_DEPTHWISE_MAX_TAPS 25

// Microkernels for any processor.
extern const xnn_dwconv_unipass_ukernel_fn xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__scalar;
extern const xnn_dwconv_unipass_ukernel_fn xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__scalar;

// Whether a value was quantized at run time.
bool xnnpack_sys_is_qd8(xnn_subgraph_t subgraph, uint32_t id);

// `xnn_define_depthwise_convolution_2d` for such inputs.
enum xnn_status xnnpack_sys_define_qd8_depthwise_convolution_2d(
    xnn_subgraph_t subgraph, uint32_t input_padding_top, uint32_t input_padding_right, uint32_t input_padding_bottom,
    uint32_t input_padding_left, uint32_t kernel_height, uint32_t kernel_width, uint32_t subsampling_height,
    uint32_t subsampling_width, uint32_t dilation_height, uint32_t dilation_width, uint32_t depth_multiplier,
    size_t input_channels, float output_min, float output_max, uint32_t input_id, uint32_t filter_id, uint32_t bias_id,
    uint32_t output_id, uint32_t flags);

#endif
