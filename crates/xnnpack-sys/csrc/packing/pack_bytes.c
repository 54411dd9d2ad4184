// Packing of 8-bit weights for every processor.
//
// XNNPACK's functions copy and add weights one by one. Those of this file have their names and layout. They copy all weights of a step
// of one channel at once, and add the weights of a channel where they lie side by side. Tiles whose steps are shuffled (`sr` above 1)
// and steps of other sizes go to XNNPACK's functions, which `build/edits/weights.rs` renames.

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "packing/pack_bytes.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

// A convolution's weights: for each channel, its weights at each position of the kernel.
struct weights {
  const uint8_t* at;
  bool is_signed;
  size_t channels;
  size_t positions;
  size_t depth;
};

// `start` is added to a bias, and the channel's sum of weights times `factor` is subtracted.
struct correction {
  uint32_t start;
  uint32_t factor;
};

// Sums of bytes 0, 2, 4 and 6, and of bytes 1, 3, 5 and 7, are 16 bits wide: this many words fit.
#define WORDS_OF_A_SUM 128
#define EVEN_BYTES UINT64_C(0x00FF00FF00FF00FF)
#define SIGN_BITS UINT64_C(0x8080808080808080)

static uint32_t add_unsigned(const uint8_t* weights, size_t count, uint64_t flip) {
  uint32_t sum = 0;
  while (count >= sizeof(uint64_t)) {
    const size_t words = min(count / sizeof(uint64_t), WORDS_OF_A_SUM);
    uint64_t sums = 0;
    for (size_t i = 0; i < words; i++) {
      uint64_t word;
      memcpy(&word, weights + i * sizeof(word), sizeof(word));
      word ^= flip;
      sums += (word & EVEN_BYTES) + (word >> 8 & EVEN_BYTES);
    }
    for (size_t i = 0; i < 4; i++) {
      sum += (uint16_t) (sums >> 16 * i);
    }
    weights += words * sizeof(uint64_t);
    count -= words * sizeof(uint64_t);
  }
  for (; count > 0; count--) {
    sum += (uint8_t) (*weights++ ^ flip);
  }
  return sum;
}

static uint32_t add(const struct weights* weights, size_t channel) {
  const size_t count = weights->positions * weights->depth;
  const uint8_t* from = weights->at + channel * count;
  // int8 is uint8 with another sign bit, less 128.
  return weights->is_signed ? add_unsigned(from, count, SIGN_BITS) - 128 * (uint32_t) count : add_unsigned(from, count, 0);
}

// Packs one position of `channels` channels, each `stride` bytes behind the one before. The weights of a channel fill steps of `kr`
// bytes; what is behind the last weight is left as it is.
static XNN_INLINE void pack_position(
    const uint8_t* from, size_t stride, size_t channels, size_t depth, size_t nr, size_t kr, uint8_t* packed)
{
  for (; depth >= kr; depth -= kr) {
    for (size_t channel = 0; channel < channels; channel++) {
      memcpy(packed + channel * kr, from + channel * stride, kr);
    }
    from += kr;
    packed += nr * kr;
  }
  for (size_t channel = 0; depth > 0 && channel < channels; channel++) {
    memcpy(packed + channel * kr, from + channel * stride, depth);
  }
}

static XNN_INLINE void pack_tiles(
    struct weights weights, size_t groups, size_t nr, size_t kr, const int32_t* bias, uint8_t* packed, size_t extra_bytes,
    struct correction correction)
{
  const size_t stride = weights.positions * weights.depth;
  for (; groups > 0; groups--) {
    for (size_t first = 0; first < weights.channels; first += nr) {
      const size_t channels = min(weights.channels - first, nr);
      for (size_t channel = 0; channel < channels; channel++) {
        const uint32_t start = correction.start + (bias != NULL ? (uint32_t) bias[first + channel] : 0);
        const uint32_t sum = correction.factor != 0 ? add(&weights, first + channel) : 0;
        const uint32_t corrected = start - sum * correction.factor;
        memcpy(packed + channel * sizeof(corrected), &corrected, sizeof(corrected));
      }
      packed += nr * sizeof(int32_t);
      for (size_t position = 0; position < weights.positions; position++) {
        const uint8_t* from = weights.at + first * stride + position * weights.depth;
        pack_position(from, stride, channels, weights.depth, nr, kr, packed);
        packed += round_up_po2(weights.depth, kr) * nr;
      }
      packed += extra_bytes;
    }
    weights.at += weights.channels * stride;
    bias = bias != NULL ? bias + weights.channels : NULL;
  }
}

// Returns whether there is a function for steps of `kr` weights, and has packed the weights if so.
static bool pack(
    struct weights weights, size_t groups, size_t nr, size_t kr, size_t sr, const int32_t* bias, void* packed,
    size_t extra_bytes, struct correction correction)
{
  if (sr != 1) {
    return false;
  }
  // A size that the compiler knows makes a copy of one or two instructions.
  switch (kr) {
    case 2:
      pack_tiles(weights, groups, nr, 2, bias, packed, extra_bytes, correction);
      return true;
    case 4:
      pack_tiles(weights, groups, nr, 4, bias, packed, extra_bytes, correction);
      return true;
    case 8:
      pack_tiles(weights, groups, nr, 8, bias, packed, extra_bytes, correction);
      return true;
    case 16:
      pack_tiles(weights, groups, nr, 16, bias, packed, extra_bytes, correction);
      return true;
    default:
      return false;
  }
}

static bool pack_qs8(
    struct weights weights, size_t groups, size_t nr, size_t kr, size_t sr, const int32_t* bias, void* packed,
    size_t extra_bytes, uint32_t zero_point)
{
  const struct correction correction = {.factor = zero_point};
  return pack(weights, groups, nr, kr, sr, bias, packed, extra_bytes, correction);
}

static bool pack_qu8(
    struct weights weights, size_t groups, size_t nr, size_t kr, size_t sr, const int32_t* bias, void* packed,
    size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  const uint32_t zero_points = (uint32_t) params->input_zero_point * params->kernel_zero_point;
  const struct correction correction = {
      .start = (uint32_t) (weights.positions * weights.depth) * zero_points, .factor = params->input_zero_point};
  return pack(weights, groups, nr, kr, sr, bias, packed, extra_bytes, correction);
}

#define ZERO_POINT_QS8 (uint32_t) params->input_zero_point
// Inputs get 128 added.
#define ZERO_POINT_QS8_TO_QU8 (uint32_t) params->input_zero_point + 128

// Functions with XNNPACK's signatures, for fully connected layers and for convolutions.
#define PACK(name, weight, is_signed, scales, layout, function, zero_point) \
  void xnn_pack_##name##_gemm_goi_w( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const weight* k, const int32_t* b, \
      const scales* scale, void* packed, size_t extra_bytes, const struct xnn_##layout##_packing_params* params) \
  { \
    const struct weights weights = {(const uint8_t*) k, is_signed, nc, 1, kc}; \
    if (!function(weights, g, nr, kr, sr, b, packed, extra_bytes, zero_point)) { \
      xnn_pack_single_##name##_gemm_goi_w(g, nc, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params); \
    } \
  } \
  void xnn_pack_##name##_conv_goki_w( \
      size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const weight* k, const int32_t* b, \
      const scales* scale, void* packed, size_t extra_bytes, const struct xnn_##layout##_packing_params* params) \
  { \
    const struct weights weights = {(const uint8_t*) k, is_signed, nc, ks, kc}; \
    if (!function(weights, g, nr, kr, sr, b, packed, extra_bytes, zero_point)) { \
      xnn_pack_single_##name##_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params); \
    } \
  }

PACK(qu8, uint8_t, false, void, qu8, pack_qu8, params)
PACK(qs8, int8_t, true, float, qs8, pack_qs8, ZERO_POINT_QS8)
PACK(qs8_to_qu8, int8_t, true, float, qs8, pack_qs8, ZERO_POINT_QS8_TO_QU8)
