// Functions that pack the weights of convolutions larger than 1 x 1, with XNNPACK's signatures.

#ifndef XNNPACK_SYS_CONVOLUTION_H
#define XNNPACK_SYS_CONVOLUTION_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"
#include "xnnpack/pack.h"

void xnnpack_sys_pack_f32_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const float* k, const float* b,
    const void* scale, float* packed_weights, size_t extra_bytes, const void* params);

// Convolutions of images quantized at run time.
void xnnpack_sys_pack_qd8_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const float* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params);

void xnnpack_sys_pack_qu8_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qu8_packing_params* params);

// Packs weights of convolutions with one input for each group.
void xnnpack_sys_pack_qu8_conv_kgo_w(
    size_t g, size_t nc, size_t ks, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params);

#endif
