// XNNPACK's functions that pack 8-bit weights one by one, under the names that `build/edits/weights.rs` gives them.

#ifndef XNNPACK_SYS_PACK_BYTES_H
#define XNNPACK_SYS_PACK_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"
#include "xnnpack/pack.h"

#define PACK_SINGLE(name, weight, scales, layout) \
  void xnn_pack_single_##name##_gemm_goi_w( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const weight* k, const int32_t* b, \
      const scales* scale, void* packed, size_t extra_bytes, const struct xnn_##layout##_packing_params* params); \
  void xnn_pack_single_##name##_conv_goki_w( \
      size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const weight* k, const int32_t* b, \
      const scales* scale, void* packed, size_t extra_bytes, const struct xnn_##layout##_packing_params* params);

PACK_SINGLE(qu8, uint8_t, void, qu8)
PACK_SINGLE(qs8, int8_t, float, qs8)
PACK_SINGLE(qs8_to_qu8, int8_t, float, qs8)

#endif
