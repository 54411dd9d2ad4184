// Packing of fp32 weights that are exact in fp16, for the matrix products of `gemm_f32_x86.h`.
//
// Each tile of 32 channels has their biases in fp32, and then for each input the channels' weights in fp16. 16 weights of 16
// channels are transposed at once.

#include "ukernels/gemm_f32.h"
#include "packing/transpose.h"
#include "xnnpack/math.h"

#define CHANNELS 32
#define LANES 16
#define UNROLL _Pragma("GCC unroll 16")

// Packs the weights of up to 16 channels, each `depth` floats behind the one before. Missing channels have weights of 0.
static void pack_lanes(const float* from, size_t channels, size_t depth, uint16_t* to) {
  for (size_t start = 0; start < depth; start += LANES) {
    const size_t count = min(depth - start, LANES);
    const __mmask16 mask = (__mmask16) (0xFFFF >> (LANES - count));
    __m512i words[LANES];
    UNROLL for (size_t channel = 0; channel < LANES; channel++) {
      const float* of_channel = from + min(channel, channels - 1) * depth + start;
      words[channel] = _mm512_maskz_loadu_epi32(channel < channels ? mask : 0, of_channel);
    }
    transpose_words(words);
    for (size_t input = 0; input < count; input++) {
      // Nothing is rounded.
      const __m256i halves = _mm512_cvtps_ph(_mm512_castsi512_ps(words[input]), _MM_FROUND_NO_EXC);
      _mm256_storeu_si256((__m256i*) (to + (start + input) * CHANNELS), halves);
    }
  }
}

void xnnpack_sys_pack_f32_f16w_goi_x32(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, void* packed, size_t extra_bytes, const void* params)
{
  (void) nr, (void) kr, (void) sr, (void) scale, (void) extra_bytes, (void) params;
  for (; groups > 0; groups--) {
    for (size_t first = 0; first < channels; first += CHANNELS) {
      float* start = packed;
      uint16_t* halves = (uint16_t*) (start + CHANNELS);
      for (size_t lanes = 0; lanes < CHANNELS; lanes += LANES) {
        const size_t done = first + lanes;
        const size_t count = done < channels ? min(channels - done, LANES) : 0;
        const __mmask16 mask = (__mmask16) ((1u << count) - 1);
        const __m512 sums = bias != NULL ? _mm512_maskz_loadu_ps(mask, bias + done) : _mm512_setzero_ps();
        _mm512_storeu_ps(start + lanes, sums);
        if (count > 0) {
          pack_lanes(weights + done * depth, count, depth, halves + lanes);
        }
      }
      packed = halves + depth * CHANNELS;
    }
    weights += channels * depth;
    bias = bias != NULL ? bias + channels : NULL;
  }
}
