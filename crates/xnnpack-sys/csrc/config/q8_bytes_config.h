// Configurations for 8-bit integers without VNNI, see `q8_bytes_config.c`. `q8_gemm_config.c` chooses among them and those for VNNI.

#ifndef XNNPACK_SYS_Q8_BYTES_CONFIG_H
#define XNNPACK_SYS_Q8_BYTES_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/config.h"
#include "xnnpack/microparams.h"
#include "xnnpack/pack.h"

// Whether the processor has SSE4.1, but not both AVX512-VNNI and VBMI.
bool xnnpack_sys_uses_q8_bytes(void);

// Products and convolutions, and transposed convolutions. XNNPACK's configurations on other processors.
const struct xnn_gemm_config* xnnpack_sys_qs8_bytes_config(void);
const struct xnn_gemm_config* xnnpack_sys_qu8_bytes_config(void);
const struct xnn_gemm_config* xnnpack_sys_qu8_plain_config(void);

// Products and convolutions of int8 with a tile of AVX2. Only for processors with AVX512.
const struct xnn_gemm_config* xnnpack_sys_qs8_few_bytes_config(void);

// Convolutions of images quantized at run time: with any number of output channels in a group, with as many as a tile of AVX2 has or
// fewer, and with `outputs`.
const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_few_bytes_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_config_for(size_t outputs);

// Products of rows quantized at run time. XNNPACK's configuration on other processors.
const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_rows_config(void);

// On 64-bit ARM, by the number of inputs: uint8 and int8, and images and rows quantized at run time. `q8_exact_config.c` replaces those
// that do not support a layer's weights.
const struct xnn_gemm_config* xnnpack_sys_qu8_neon_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qs8_neon_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qd8_neon_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qd8_neon_rows_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qu8_pairs_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_pairs_config(void);

// Pack weights of convolutions for these, and return whether the tile is one of them.
bool xnnpack_sys_pack_qu8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params);

bool xnnpack_sys_pack_qd8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const float* scale, void* packed, size_t extra_bytes, const struct xnn_qs8_packing_params* params);

// Initializes parameters of uint8 for `fixed_point.h`. With XNNPACK's signature, which has the quotient of scales in single precision;
// operators call `xnnpack_sys_init_qu8_params`.
size_t xnnpack_sys_init_fixed_point_qu8_params(
    union xnn_qu8_conv_minmax_params params[1], uint8_t kernel_zero_point, float scale, uint8_t output_zero_point,
    uint8_t output_min, uint8_t output_max);

#endif
