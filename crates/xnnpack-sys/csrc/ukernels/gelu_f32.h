// GELU with tanh, see `gelu_f32_x86.h`.

#ifndef XNNPACK_SYS_GELU_F32_H
#define XNNPACK_SYS_GELU_F32_H

#include "ukernels/unary_f32.h"

// The function is x / (1 + e^-(x * (linear + cubic * x^2))). Both factors are positive and finite.
struct xnnpack_sys_gelu {
  float linear;
  float cubic;
};

// `params` are a `struct xnnpack_sys_gelu`.
F32_UNARY(xnnpack_sys_f32_vgelu_ukernel__sse41);
F32_UNARY(xnnpack_sys_f32_vgelu_ukernel__avx);
F32_UNARY(xnnpack_sys_f32_vgelu_ukernel__avx2);
F32_UNARY(xnnpack_sys_f32_vgelu_ukernel__avx512f);

#endif
