// Packing of fp32 weights of convolutions that are larger than 1 x 1.
//
// XNNPACK packs them one by one. If a tile takes one input channel at a time, the layout is that of a matrix with as many columns
// as a channel has weights, for which XNNPACK has microkernels.

#include "packing/convolution.h"

#include <stddef.h>

#include "config/operators.h"
#include "xnnpack/config.h"
#include "xnnpack/pack.h"

void xnnpack_sys_pack_f32_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const float* k, const float* b,
    const void* scale, float* packed_weights, size_t extra_bytes, const void* params)
{
  const struct xnn_gemm_config* const tiles[] = {xnn_init_f32_gemm_config(), xnnpack_sys_narrow_f32_gemm_config()};
  for (size_t i = 0; kr == 1 && sr == 1 && i < sizeof(tiles) / sizeof(tiles[0]); i++) {
    if (tiles[i] != NULL && tiles[i]->nr == nr) {
      tiles[i]->pack_gemm_goi(g, nc, ks * kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
      return;
    }
  }
  xnn_pack_f32_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}
