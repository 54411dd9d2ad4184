// Packing of weights for the matrix products of `gemm_q8.c`.
//
// The layout is that of XNNPACK's `xnn_pack_qu8_*_goki_w` and `xnn_pack_qs8_to_qu8_*_goki_w`, which copy and add up
// single bytes. Four weights of a channel are one word here, and their sums are products with ones.

#include <string.h>

#include "gemm_q8.h"
#include "q8.h"
#include "xnnpack/math.h"

#define CHANNELS Q8_GEMM_CHANNELS
#define DEPTH (1 << Q8_GEMM_LOG2_DEPTH)
#define LANES 16

// A convolution's weights: for each channel, its weights at each position of the kernel.
struct weights {
  const uint8_t* at;
  size_t channels;
  size_t positions;
  size_t depth;
};

// What becomes of a bias: `start` is added, and the channel's sum of weights times `factor` taken off.
struct correction {
  uint32_t start;
  uint32_t factor;
};

// Adds the first `count` of each four bytes to the sums of 16 channels.
static XNN_INLINE __m512i add_up(enum kind kind, __m512i sums, const uint8_t* packed, size_t count) {
  const __m512i weights = _mm512_loadu_si512(packed);
  const __m512i ones = _mm512_set1_epi32(0x01010101u >> 8 * (DEPTH - count));
  return kind == SIGNED ? _mm512_dpbusd_epi32(sums, ones, weights) : _mm512_dpbusd_epi32(sums, weights, ones);
}

// Packs up to 32 channels; returns the end. Bytes that stand for no weight are left as they are.
static XNN_INLINE uint8_t* pack_tile(
    enum kind kind, const struct weights* weights, size_t first, const int32_t* bias, uint8_t* packed,
    const struct correction* correction)
{
  const size_t channels = min(weights->channels - first, CHANNELS);
  const size_t stride = weights->positions * weights->depth;
  int32_t* biases = (int32_t*) packed;
  packed += CHANNELS * sizeof(int32_t);
  __m512i sums[CHANNELS / LANES] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (size_t position = 0; position < weights->positions; position++) {
    const uint8_t* from = weights->at + first * stride + position * weights->depth;
    for (size_t left = weights->depth; left > 0; left = doz(left, DEPTH), from += DEPTH) {
      const size_t count = min(left, DEPTH);
      if (count == DEPTH) {
        for (size_t channel = 0; channel < channels; channel++) {
          memcpy(packed + channel * DEPTH, from + channel * stride, DEPTH);
        }
      } else {
        for (size_t channel = 0; channel < channels; channel++) {
          memcpy(packed + channel * DEPTH, from + channel * stride, count);
        }
      }
      for (size_t half = 0; half < CHANNELS / LANES; half++) {
        sums[half] = add_up(kind, sums[half], packed + half * LANES * DEPTH, count);
      }
      packed += CHANNELS * DEPTH;
    }
  }
  for (size_t half = 0; half * LANES < channels; half++) {
    const __mmask16 lanes = (__mmask16) ((UINT32_C(1) << min(channels - half * LANES, LANES)) - 1);
    __m512i sum = _mm512_set1_epi32((int32_t) correction->start);
    if (bias != NULL) {
      sum = _mm512_add_epi32(sum, _mm512_maskz_loadu_epi32(lanes, bias + first + half * LANES));
    }
    const __m512i factor = _mm512_set1_epi32((int32_t) correction->factor);
    sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(sums[half], factor));
    _mm512_mask_storeu_epi32(biases + half * LANES, lanes, sum);
  }
  return packed;
}

static XNN_INLINE void pack(
    enum kind kind, size_t groups, struct weights weights, const int32_t* bias, uint8_t* packed, size_t extra_bytes,
    struct correction correction)
{
  for (; groups > 0; groups--) {
    for (size_t first = 0; first < weights.channels; first += CHANNELS) {
      packed = pack_tile(kind, &weights, first, bias, packed, &correction) + extra_bytes;
    }
    weights.at += weights.channels * weights.positions * weights.depth;
    if (bias != NULL) {
      bias += weights.channels;
    }
  }
}

void xnnpack_sys_pack_qs8_goki_32c4(
    size_t groups, size_t channels, size_t positions, size_t depth, const int8_t* weights, const int32_t* bias,
    void* packed, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  const struct weights all = {(const uint8_t*) weights, channels, positions, depth};
  const struct correction correction = {0, (uint32_t) ((int32_t) params->input_zero_point + OFFSET)};
  pack(SIGNED, groups, all, bias, packed, extra_bytes, correction);
}

void xnnpack_sys_pack_qu8_goki_32c4(
    size_t groups, size_t channels, size_t positions, size_t depth, const uint8_t* weights, const int32_t* bias,
    void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  const struct weights all = {weights, channels, positions, depth};
  const uint32_t zero_points = (uint32_t) params->input_zero_point * params->kernel_zero_point;
  const struct correction correction = {(uint32_t) (positions * depth) * zero_points, params->input_zero_point};
  pack(UNSIGNED, groups, all, bias, packed, extra_bytes, correction);
}
