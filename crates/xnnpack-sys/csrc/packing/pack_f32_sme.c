// Packing of fp32 weights for SME: a tile's channels are rows that are transposed, as inputs are (`gemm_f32_sme.c`).

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ukernels/gemm_f32.h"
#include "ukernels/transpose_sme.h"
#include "xnnpack/math.h"
#include "xnnpack/pack.h"

// Packs the weights of all channels, behind biases that are there already. What is behind the last channel is the same each time.
static void pack_weights(const float* weights, size_t channels, size_t depth, size_t nr, float* packed, size_t stride) {
  struct sme_input rows = {.first = weights, .stride = depth * sizeof(float), .positions = 1, .words = depth};
  struct sme_saved saved;
  sme_start(&saved);
  for (size_t first = 0; first < channels; first += nr) {
    rows.rows = min(channels - first, nr);
    sme_clear();
    sme_transpose(&rows, nr / 2, 0, depth, packed + nr);
    rows.first = sme_behind(rows.first, nr * rows.stride);
    packed = (float*) ((uintptr_t) packed + stride);
  }
  sme_stop(&saved);
}

void xnnpack_sys_pack_f32_goi__sme(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, float* packed, size_t extra_bytes, const void* params)
{
  if (!sme_is_usable()) {
    xnn_pack_f32_gemm_goi_w(groups, channels, depth, nr, kr, sr, weights, bias, scale, packed, extra_bytes, params);
    return;
  }
  const size_t stride = nr * (1 + depth) * sizeof(float) + extra_bytes;
  for (; groups > 0; groups--) {
    float* at = packed;
    for (size_t first = 0; first < channels; first += nr) {
      const size_t count = min(channels - first, nr);
      memset(at, 0, nr * sizeof(float));
      if (bias != NULL) {
        memcpy(at, bias + first, count * sizeof(float));
      }
      at = (float*) ((uintptr_t) at + stride);
    }
    pack_weights(weights, channels, depth, nr, packed, stride);
    packed = at;
    weights += channels * depth;
    bias = bias != NULL ? bias + channels : NULL;
  }
}
