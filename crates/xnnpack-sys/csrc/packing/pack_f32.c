// Packing of fp32 weights.
//
// XNNPACK packs those of convolutions larger than 1 x 1 one by one. If no tile of input channels reaches into the next position, the
// layout is that of a matrix with as many columns as a channel has weights, for which there are faster functions. For tiles of two
// input channels at a time XNNPACK has none.

#include "packing/convolution.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if XNN_ARCH_X86_64
#include <xmmintrin.h>
#endif

#include "config/operators.h"
#include "ukernels/gemm_f32.h"
#include "xnnpack/config.h"
#include "xnnpack/math.h"
#include "xnnpack/pack.h"

void xnnpack_sys_pack_f32_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const float* k, const float* b,
    const void* scale, float* packed_weights, size_t extra_bytes, const void* params)
{
  const struct xnn_gemm_config* const tiles[] = {
      xnnpack_sys_f32_wide_gemm_config(), xnn_init_f32_gemm_config(), xnnpack_sys_narrow_conv_f32_gemm_config(),
      xnnpack_sys_f32_pairs_gemm_config()};
  for (size_t i = 0; kc % kr == 0 && sr == 1 && i < sizeof(tiles) / sizeof(tiles[0]); i++) {
    if (tiles[i] != NULL && tiles[i]->nr == nr && (size_t) 1 << tiles[i]->log2_kr == kr) {
      tiles[i]->pack_gemm_goi(g, nc, ks * kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
      return;
    }
  }
  xnn_pack_f32_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}

// Packs the weights of up to F32_PAIRS_CHANNELS channels, which begin `stride` weights apart. What is behind the last is not used.
static void pack_channels(const float* weights, size_t channels, size_t depth, size_t stride, float* packed) {
  enum { STEP = F32_PAIRS_STEP };
  for (size_t channel = 0; channel < channels; channel++) {
    const float* from = weights + channel * stride;
    float* to = packed + channel * STEP;
    for (size_t pairs = depth / STEP; pairs > 0; pairs--) {
      memcpy(to, from, STEP * sizeof(float));
      from += STEP;
      to += F32_PAIRS_CHANNELS * STEP;
    }
    if (depth % STEP != 0) {
      // Weights that are packed in each run lie in memory that has been used before.
      to[0] = *from;
      to[1] = 0.0f;
    }
  }
}

// Packs up to F32_PAIRS_CHANNELS biases, zeros if there are none. Returns the place for the weights.
static inline float* pack_bias(const float* bias, size_t channels, float* packed) {
  if (bias != NULL) {
    memcpy(packed, bias, channels * sizeof(float));
  } else {
    memset(packed, 0, channels * sizeof(float));
  }
  return packed + F32_PAIRS_CHANNELS;
}

// Packs the weights of up to F32_PAIRS_CHANNELS channels.
typedef void pack_fn(const float* weights, size_t channels, size_t depth, size_t stride, float* packed);

// Packs biases and weights of all groups. The next channel's weights begin `step` weights further on.
static XNN_INLINE void pack_groups(
    pack_fn* pack, size_t groups, size_t channels, size_t depth, size_t step, size_t stride, const float* weights, const float* bias,
    float* packed, size_t extra_bytes)
{
  for (; groups > 0; groups--) {
    for (size_t first = 0; first < channels; first += F32_PAIRS_CHANNELS) {
      const size_t count = min(channels - first, F32_PAIRS_CHANNELS);
      packed = pack_bias(bias != NULL ? bias + first : NULL, count, packed);
      pack(weights + first * step, count, depth, stride, packed);
      packed += round_up_po2(depth, F32_PAIRS_STEP) * F32_PAIRS_CHANNELS;
      packed = (float*) ((uintptr_t) packed + extra_bytes);
    }
    weights += channels * depth;
    bias = bias != NULL ? bias + channels : NULL;
  }
}

void xnnpack_sys_pack_f32_pairs_goi(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, float* packed, size_t extra_bytes, const void* params)
{
  (void) nr, (void) kr, (void) sr, (void) scale, (void) params;
  pack_groups(pack_channels, groups, channels, depth, depth, depth, weights, bias, packed, extra_bytes);
}

#if XNN_ARCH_X86_64

// Packs as `pack_channels` weights whose inputs, not channels, begin `stride` weights apart.
static void pack_inputs(const float* weights, size_t channels, size_t depth, size_t stride, float* packed) {
  enum { STEP = F32_PAIRS_STEP };
  for (; depth != 0; depth -= min(depth, STEP)) {
    const float* next = weights + stride;
    if (channels == F32_PAIRS_CHANNELS && depth >= STEP) {
      const __m128 a = _mm_loadu_ps(weights);
      const __m128 b = _mm_loadu_ps(next);
      _mm_storeu_ps(packed, _mm_unpacklo_ps(a, b));
      _mm_storeu_ps(packed + F32_PAIRS_CHANNELS, _mm_unpackhi_ps(a, b));
    } else {
      for (size_t channel = 0; channel < channels; channel++) {
        packed[channel * STEP] = weights[channel];
        packed[channel * STEP + 1] = depth >= STEP ? next[channel] : 0.0f;
      }
    }
    weights += STEP * stride;
    packed += STEP * F32_PAIRS_CHANNELS;
  }
}

void xnnpack_sys_pack_f32_pairs_gio(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, size_t stride, const float* weights,
    const float* bias, const void* scale, float* packed, size_t extra_bytes, const void* params)
{
  (void) nr, (void) kr, (void) sr, (void) scale, (void) params;
  pack_groups(pack_inputs, groups, channels, depth, 1, stride, weights, bias, packed, extra_bytes);
}

#endif
