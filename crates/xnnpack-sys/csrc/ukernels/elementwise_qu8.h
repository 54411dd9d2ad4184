// Operators on uint8, see `elementwise_qu8.c`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_ELEMENTWISE_QU8_H
#define XNNPACK_SYS_ELEMENTWISE_QU8_H

#include <stddef.h>

#include "xnnpack.h"
#include "xnnpack/microparams.h"

// Initialize the parameters of the microkernels below. An operand with a negative scale is subtracted.
size_t xnnpack_sys_init_qu8_add_params(
    union xnn_binary_uparams* params, const struct xnn_quantization_params* a,
    const struct xnn_quantization_params* b, const struct xnn_quantization_params* output);

size_t xnnpack_sys_init_qu8_convert_params(
    union xnn_unary_uparams* params, const union xnn_unary_params* none, const struct xnn_quantization_params* from,
    const struct xnn_quantization_params* to);

// Sums of two vectors, and of a vector and one element. AVX512 with VNNI.
void xnnpack_sys_qu8_vadd_ukernel__avx512vnni(
    size_t batch, const void* a, const void* b, void* output, const void* params);
void xnnpack_sys_qu8_vaddc_ukernel__avx512vnni(
    size_t batch, const void* a, const void* b, void* output, const void* params);

// Converts to another scale and zero point.
void xnnpack_sys_qu8_vcvt_ukernel__avx512vnni(
    size_t batch, const void* input, void* output, const union xnn_unary_uparams* params);

#endif
