// Microkernels for uint8 that round as TFLite's reference kernels do, for WebAssembly with SIMD. Signatures are those of XNNPACK's
// microkernels.

#ifndef XNNPACK_SYS_QU8_WASMSIMD_H
#define XNNPACK_SYS_QU8_WASMSIMD_H

#include <stddef.h>
#include <stdint.h>

#include "ukernels/elementwise_qu8.h"
#include "xnnpack/microparams.h"

// Tile of matrix products: rows, channels, and the logarithm of the number of inputs that are multiplied at a time.
#define QU8_WASM_ROWS 4
#define QU8_WASM_CHANNELS 8
#define QU8_WASM_LOG2_DEPTH 1

#define QU8_WASM_GEMM(tile) \
  void xnnpack_sys_qu8_gemm_minmax_ukernel_##tile##c2__wasmsimd( \
      size_t mr, size_t nc, size_t kc, const void* a, size_t a_stride, const void* w, void* c, size_t cm_stride, \
      size_t cn_stride, const void* params); \
  void xnnpack_sys_qu8_igemm_minmax_ukernel_##tile##c2__wasmsimd( \
      size_t mr, size_t nc, size_t kc, size_t ks, const void** a, const void* w, void* c, size_t cm_stride, \
      size_t cn_stride, size_t a_offset, const void* zero, const void* params)

QU8_WASM_GEMM(1x8);
QU8_WASM_GEMM(4x8);

// Channels of depthwise convolutions that are packed together.
#define QU8_WASM_DEPTHWISE_CHANNELS 8

#define QU8_WASM_DEPTHWISE(taps) \
  void xnnpack_sys_qu8_dwconv_minmax_ukernel_##taps##p8c__wasmsimd( \
      size_t channels, size_t output_width, const void** input, const void* weights, void* output, \
      intptr_t input_stride, size_t output_increment, size_t input_offset, const void* zero, const void* params)

QU8_WASM_DEPTHWISE(9);
QU8_WASM_DEPTHWISE(25);

QU8_ELEMENTWISE(wasmsimd);

#endif
