// Packing of weights for the convolutions of `conv_qd8.c`.
//
// The layout is that of XNNPACK's `xnn_pack_qs8_conv_goki_w`, which copies and adds single bytes. Eight weights of a channel are a
// pair of words here: eight pairs of eight channels are transposed at once, and products with ones add them.

#include "ukernels/gemm_qd8.h"
#include "packing/transpose.h"
#include "xnnpack/math.h"

#define CHANNELS QD8_GEMM_CHANNELS
#define DEPTH (1 << QD8_CONV_LOG2_DEPTH)
// Channels of a vector of weights, and weights of a channel that are loaded at once.
#define EIGHT 8
#define BLOCK 64
#define UNROLL _Pragma("GCC unroll 8")

// Packs one position of up to eight channels, each `stride` bytes behind the one before, and returns `sums` with the weights
// added, two sums for each channel. The last weights of a channel are padded with zeros to eight.
static XNN_INLINE __m512i pack_position(
    const int8_t* from, size_t stride, size_t channels, size_t depth, uint8_t* packed, __m512i sums)
{
  for (size_t start = 0; start < depth; start += BLOCK) {
    const size_t count = min(depth - start, BLOCK);
    const __mmask64 bytes = UINT64_MAX >> (BLOCK - count);
    __m512i pairs[EIGHT];
    UNROLL for (size_t channel = 0; channel < EIGHT; channel++) {
      const __mmask64 mask = channel < channels ? bytes : 0;
      pairs[channel] = _mm512_maskz_loadu_epi8(mask, from + min(channel, channels - 1) * stride + start);
    }
    transpose_pairs(pairs);
    for (size_t pair = 0; pair * DEPTH < count; pair++) {
      sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), pairs[pair]);
      _mm512_storeu_si512(packed, pairs[pair]);
      packed += CHANNELS * DEPTH;
    }
  }
  return sums;
}

// Returns the negative sums of eight channels, which are multiplied by each input's zero point.
static XNN_INLINE void store_sums(__m512i pairs, int32_t* to) {
  const __m512i halves = _mm512_add_epi64(pairs, _mm512_srli_epi64(pairs, 32));
  _mm256_storeu_si256((__m256i*) to, _mm256_sub_epi32(_mm256_setzero_si256(), _mm512_cvtepi64_epi32(halves)));
}

// Packs up to 32 channels and returns the end. Missing channels have weights of 0.
static uint8_t* pack_tile(const int8_t* weights, size_t channels, size_t positions, size_t depth, uint8_t* packed) {
  const size_t stride = positions * depth;
  const size_t position_size = divide_round_up(depth, DEPTH) * DEPTH * CHANNELS;
  for (size_t first = 0; first < channels; first += EIGHT) {
    const size_t count = min(channels - first, EIGHT);
    const int8_t* from = weights + first * stride;
    uint8_t* to = packed + CHANNELS * sizeof(int32_t) + first * DEPTH;
    __m512i sums = _mm512_setzero_si512();
    for (size_t position = 0; position < positions; position++) {
      sums = pack_position(from, stride, count, depth, to, sums);
      from += depth;
      to += position_size;
    }
    store_sums(sums, (int32_t*) packed + first);
  }
  return packed + CHANNELS * sizeof(int32_t) + positions * position_size;
}

void xnnpack_sys_pack_qd8_goki_32c8(
    size_t groups, size_t channels, size_t positions, size_t depth, const int8_t* weights, void* packed,
    size_t extra_bytes)
{
  uint8_t* to = packed;
  for (; groups > 0; groups--) {
    for (size_t first = 0; first < channels; first += CHANNELS) {
      const size_t count = min(channels - first, CHANNELS);
      to = pack_tile(weights + first * positions * depth, count, positions, depth, to) + extra_bytes;
    }
    weights += channels * positions * depth;
  }
}
