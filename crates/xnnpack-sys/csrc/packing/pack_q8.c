// Packing of weights for the matrix products of `gemm_q8.c`.
//
// The layout is that of XNNPACK's `xnn_pack_qu8_*_goki_w` and `xnn_pack_qs8_to_qu8_*_goki_w`, which copy and add single bytes,
// except that int8 weights may have 128 added. Four weights of a channel are one word here: 16 words of 16 channels are transposed
// at once, and products with ones add them.

#include "ukernels/gemm_q8.h"
#include "ukernels/q8.h"
#include "packing/transpose.h"
#include "xnnpack/math.h"

#define CHANNELS Q8_GEMM_CHANNELS
#define DEPTH (1 << Q8_GEMM_LOG2_DEPTH)
// Channels of a vector of sums, and weights of a channel that are packed at once.
#define LANES 16
#define BLOCK (LANES * DEPTH)
#define UNROLL _Pragma("GCC unroll 16")

// A convolution's weights: for each channel, its weights at each position of the kernel.
struct weights {
  const uint8_t* at;
  size_t channels;
  size_t positions;
  size_t depth;
};

// `start` is added to a bias, and the channel's sum of weights times `factor` is subtracted. `shift` is added to weights, without a
// carry.
struct correction {
  uint32_t start;
  uint32_t factor;
  uint8_t shift;
};

static XNN_INLINE __m512i add_up(enum kind kind, __m512i sums, __m512i weights) {
  const __m512i ones = _mm512_set1_epi8(1);
  return kind == SIGNED ? _mm512_dpbusd_epi32(sums, ones, weights) : _mm512_dpbusd_epi32(sums, weights, ones);
}

static XNN_INLINE __mmask64 first_bytes_of_words(size_t count) {
  return UINT64_C(0x1111111111111111) * ((1u << count) - 1);
}

// Packs one position of up to 16 channels, each `stride` bytes behind the one before, and returns `sums` with the weights added.
// Lanes without a channel are not written, and their sums mean nothing. The last weights of a channel are padded with zeros to
// four.
static XNN_INLINE __m512i pack_position(
    enum kind kind, const uint8_t* from, size_t stride, size_t channels, size_t depth, uint8_t shift, uint8_t* packed,
    __m512i sums)
{
  const __mmask16 lanes = (__mmask16) ((UINT32_C(1) << channels) - 1);
  for (size_t start = 0; start < depth; start += BLOCK) {
    const size_t count = min(depth - start, BLOCK);
    const __mmask64 bytes = UINT64_MAX >> (BLOCK - count);
    __m512i words[LANES];
    UNROLL for (size_t lane = 0; lane < LANES; lane++) {
      words[lane] = _mm512_maskz_loadu_epi8(bytes, from + min(lane, channels - 1) * stride + start);
    }
    transpose_words(words);
    for (size_t word = 0; word * DEPTH < count; word++) {
      sums = add_up(kind, sums, words[word]);
      // Padding of the last word stays 0.
      const __mmask64 own = first_bytes_of_words(min(count - word * DEPTH, DEPTH));
      const __m512i shifted = _mm512_mask_add_epi8(words[word], own, words[word], _mm512_set1_epi8((int8_t) shift));
      _mm512_mask_storeu_epi32(packed, lanes, shifted);
      packed += CHANNELS * DEPTH;
    }
  }
  return sums;
}

// Packs up to 32 channels and returns the end.
static XNN_INLINE uint8_t* pack_tile(
    enum kind kind, const struct weights* weights, size_t first, const int32_t* bias, uint8_t* packed,
    const struct correction* correction)
{
  const size_t stride = weights->positions * weights->depth;
  const size_t position_size = divide_round_up(weights->depth, DEPTH) * DEPTH * CHANNELS;
  const size_t channels = min(weights->channels - first, CHANNELS);
  for (size_t half = 0; half < channels; half += LANES) {
    const size_t count = min(channels - half, LANES);
    const uint8_t* from = weights->at + (first + half) * stride;
    int32_t* biases = (int32_t*) packed + half;
    uint8_t* to = packed + (CHANNELS + half) * sizeof(int32_t);
    __m512i sums = _mm512_setzero_si512();
    for (size_t position = 0; position < weights->positions; position++) {
      sums = pack_position(kind, from, stride, count, weights->depth, correction->shift, to, sums);
      from += weights->depth;
      to += position_size;
    }
    const __mmask16 lanes = (__mmask16) ((UINT32_C(1) << count) - 1);
    __m512i sum = _mm512_set1_epi32((int32_t) correction->start);
    if (bias != NULL) {
      sum = _mm512_add_epi32(sum, _mm512_maskz_loadu_epi32(lanes, bias + first + half));
    }
    const __m512i factor = _mm512_set1_epi32((int32_t) correction->factor);
    _mm512_mask_storeu_epi32(biases, lanes, _mm512_sub_epi32(sum, _mm512_mullo_epi32(sums, factor)));
  }
  return packed + CHANNELS * sizeof(int32_t) + weights->positions * position_size;
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
    void* packed, size_t extra_bytes, int32_t zero_point, uint8_t shift)
{
  const struct weights all = {(const uint8_t*) weights, channels, positions, depth};
  const struct correction correction = {.factor = (uint32_t) zero_point, .shift = shift};
  pack(SIGNED, groups, all, bias, packed, extra_bytes, correction);
}

void xnnpack_sys_pack_qu8_goki_32c4(
    size_t groups, size_t channels, size_t positions, size_t depth, const uint8_t* weights, const int32_t* bias,
    void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  const struct weights all = {weights, channels, positions, depth};
  const uint32_t zero_points = (uint32_t) params->input_zero_point * params->kernel_zero_point;
  const struct correction correction = {
      .start = (uint32_t) (positions * depth) * zero_points, .factor = params->input_zero_point};
  pack(UNSIGNED, groups, all, bias, packed, extra_bytes, correction);
}

void xnnpack_sys_pack_qs8_gio_32c4(
    size_t channels, size_t depth, size_t stride, const int8_t* weights, const int32_t* bias, void* packed,
    size_t extra_bytes, int32_t zero_point, uint8_t shift)
{
  uint8_t* to = packed;
  for (size_t first = 0; first < channels; first += CHANNELS) {
    const size_t count = min(channels - first, CHANNELS);
    uint32_t* biases = (uint32_t*) to;
    to += CHANNELS * sizeof(uint32_t);
    for (size_t lane = 0; lane < count; lane++) {
      biases[lane] = bias == NULL ? 0 : (uint32_t) bias[first + lane];
    }
    for (size_t i = 0; i < divide_round_up(depth, DEPTH) * DEPTH; i++) {
      for (size_t lane = 0; lane < count; lane++) {
        const int8_t weight = i < depth ? weights[i * stride + first + lane] : 0;
        biases[lane] -= (uint32_t) weight * (uint32_t) zero_point;
        to[lane * DEPTH + i % DEPTH] = i < depth ? (uint8_t) (weight + shift) : 0;
      }
      to += i % DEPTH == DEPTH - 1 ? CHANNELS * DEPTH : 0;
    }
    to += extra_bytes;
  }
}

void xnnpack_sys_pack_amx_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  const int32_t zero_point = params->input_zero_point;
  xnnpack_sys_pack_qs8_goki_32c4(g, nc, ks, kc, k, b, packed_weights, extra_bytes, zero_point, /*shift=*/0);
}

void xnnpack_sys_pack_amx_goi(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  xnnpack_sys_pack_amx_goki(g, nc, /*ks=*/1, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}

void xnnpack_sys_pack_amx_gio(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, size_t k_stride, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  const int32_t zero_point = params->input_zero_point;
  xnnpack_sys_pack_qs8_gio_32c4(nc, kc, k_stride, k, b, packed_weights, extra_bytes, zero_point, /*shift=*/0);
}
