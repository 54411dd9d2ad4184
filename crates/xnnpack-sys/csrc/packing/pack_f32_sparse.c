// Packing of fp32 weights of which many are 0, see `ukernels/gemm_f32_sparse.h`: the bias and the weights of each channel, and behind them
// the places of the weights that are not 0.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ukernels/gemm_f32_sparse_api.h"

// Packs channels whose weights begin `step` weights apart; from one weight of a channel to the next there are `stride`.
static inline void pack(
    size_t channels, size_t depth, size_t step, size_t stride, const float* weights, const float* bias, float* packed)
{
  for (size_t channel = 0; channel < channels; channel++) {
    const float* from = weights + channel * step;
    uint16_t* places = f32_sparse_places_of(packed, depth);
    size_t count = 0;
    packed[0] = bias != NULL ? bias[channel] : 0.0f;
    for (size_t k = 0; k < depth; k++) {
      const float weight = from[k * stride];
      packed[1 + k] = weight;
      // Behind the last place there is room for one more.
      places[1 + count] = (uint16_t) k;
      count += weight != 0.0f;
    }
    places[0] = (uint16_t) count;
    memset(places + 1 + count, 0, f32_sparse_places(depth) - (1 + count) * sizeof(uint16_t));
    packed = f32_sparse_channel(packed, 1, depth);
  }
}

void xnnpack_sys_pack_f32_sparse_goi(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, float* packed, size_t extra_bytes, const void* params)
{
  (void) nr, (void) kr, (void) sr, (void) scale, (void) extra_bytes, (void) params;
  pack(groups * channels, depth, /*step=*/depth, /*stride=*/1, weights, bias, packed);
}

// Fully connected layers, which alone are packed so, have no groups.
void xnnpack_sys_pack_f32_sparse_gio(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, size_t stride, const float* weights,
    const float* bias, const void* scale, float* packed, size_t extra_bytes, const void* params)
{
  (void) groups, (void) nr, (void) kr, (void) sr, (void) scale, (void) extra_bytes, (void) params;
  pack(channels, depth, /*step=*/1, stride, weights, bias, packed);
}

bool xnnpack_sys_are_places_sound(size_t channels, size_t depth, const void* packed) {
  for (const float* channel = packed; channels > 0; channels--, channel = f32_sparse_channel(channel, 1, depth)) {
    const uint16_t* places = f32_sparse_places_of(channel, depth);
    const size_t count = places[0];
    if (count > depth) {
      return false;
    }
    for (size_t i = 1; i <= count; i++) {
      if (places[i] >= depth) {
        return false;
      }
    }
  }
  return true;
}
