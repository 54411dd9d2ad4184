// XNNPACK's functions for packing 8-bit weights, followed by a preparation of what they packed.

#ifndef XNNPACK_SYS_Q8_PACKING_H
#define XNNPACK_SYS_Q8_PACKING_H

#include "xnnpack/microparams.h"
#include "xnnpack/pack.h"

// Defines functions for convolutions, for those with one input for each group, and for fully connected layers in both orders, with
// XNNPACK's signatures.
#define PACKING(type, byte, of_xnnpack, prepare) \
  static void pack_##type##_goki( \
      size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const byte* k, const int32_t* b, \
      const void* scale, void* packed, size_t extra_bytes, const struct xnn_##type##_packing_params* params) \
  { \
    xnn_pack_##of_xnnpack##_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params); \
    prepare(g, nc, ks, kc, nr, kr, packed, extra_bytes, params); \
  } \
  static void pack_##type##_kgo( \
      size_t g, size_t nc, size_t ks, size_t nr, size_t kr, size_t sr, const byte* k, const int32_t* b, \
      const void* scale, void* packed, size_t extra_bytes, const struct xnn_##type##_packing_params* params) \
  { \
    xnn_pack_##of_xnnpack##_conv_kgo_w(g, nc, ks, nr, kr, sr, k, b, scale, packed, extra_bytes, params); \
    prepare(g, nc, ks, /*kc=*/1, nr, kr, packed, extra_bytes, params); \
  } \
  PACKING_ROWS(type, byte, type, of_xnnpack, prepare)

// Defines functions for fully connected layers alone. `parameters` is the type of their parameters.
#define PACKING_ROWS(type, byte, parameters, of_xnnpack, prepare) \
  static void pack_##type##_goi( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const byte* k, const int32_t* b, \
      const void* scale, void* packed, size_t extra_bytes, const struct xnn_##parameters##_packing_params* params) \
  { \
    xnn_pack_##of_xnnpack##_gemm_goi_w(g, nc, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params); \
    prepare(g, nc, /*ks=*/1, kc, nr, kr, packed, extra_bytes, params); \
  } \
  static void pack_##type##_gio( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, size_t k_stride, const byte* k, const int32_t* b, \
      const void* scale, void* packed, size_t extra_bytes, const struct xnn_##parameters##_packing_params* params) \
  { \
    xnn_pack_##of_xnnpack##_gemm_gio_w(g, nc, kc, nr, kr, sr, k_stride, k, b, scale, packed, extra_bytes, params); \
    prepare(g, nc, /*ks=*/1, kc, nr, kr, packed, extra_bytes, params); \
  }

#endif
