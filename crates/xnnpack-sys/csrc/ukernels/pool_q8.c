// Maximum of windows of 8-bit integers, 64 channels at a time. XNNPACK takes 16 channels, and nine elements of each window, repeating
// the first one.

#include "ukernels/pool_q8.h"

#include <immintrin.h>

#include "ukernels/microkernel.h"

#define LANES 64
#define UNROLL _Pragma("GCC unroll 9")

enum kind { SIGNED, UNSIGNED };

static XNN_INLINE __m512i larger(enum kind kind, __m512i a, __m512i b) {
  return kind == SIGNED ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b);
}

static XNN_INLINE __m512i smaller(enum kind kind, __m512i a, __m512i b) {
  return kind == SIGNED ? _mm512_min_epi8(a, b) : _mm512_min_epu8(a, b);
}

struct bounds {
  __m512i low;
  __m512i high;
};

// `kind` and `elements` are constants wherever this is inlined, except for windows of other sizes.
static XNN_INLINE void store_largest(
    enum kind kind, size_t elements, size_t channels, const uint8_t** input, size_t input_offset, uint8_t* output,
    const struct bounds* bounds)
{
  for (size_t channel = 0; channel < channels; channel += LANES) {
    const size_t left = channels - channel;
    const __mmask64 lanes = left < LANES ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
    const size_t offset = input_offset + channel;
    __m512i most = _mm512_maskz_loadu_epi8(lanes, (const void*) ((uintptr_t) input[0] + offset));
    UNROLL for (size_t i = 1; i < elements; i++) {
      most = larger(kind, most, _mm512_maskz_loadu_epi8(lanes, (const void*) ((uintptr_t) input[i] + offset)));
    }
    most = smaller(kind, larger(kind, most, bounds->low), bounds->high);
    _mm512_mask_storeu_epi8(output + channel, lanes, most);
  }
}

static XNN_INLINE void pool(
    enum kind kind, size_t pixels, size_t elements, size_t channels, const uint8_t** input, size_t input_offset,
    uint8_t* output, size_t input_increment, size_t output_increment, struct bounds bounds)
{
  for (; pixels > 0; pixels--) {
    switch (elements) {
      case 2: store_largest(kind, 2, channels, input, input_offset, output, &bounds); break;
      case 4: store_largest(kind, 4, channels, input, input_offset, output, &bounds); break;
      case 9: store_largest(kind, 9, channels, input, input_offset, output, &bounds); break;
      default: store_largest(kind, elements, channels, input, input_offset, output, &bounds); break;
    }
    input = (const uint8_t**) ((uintptr_t) (input + pool_addresses(elements)) + input_increment);
    output += channels + output_increment;
  }
}

#define POOL(kind) \
  const struct bounds bounds = { \
      .low = _mm512_set1_epi8((int8_t) params->scalar.min), .high = _mm512_set1_epi8((int8_t) params->scalar.max)}; \
  pool( \
      kind, output_pixels, kernel_elements, channels, (const uint8_t**) input, input_offset, (uint8_t*) output, \
      input_increment, output_increment, bounds)

S8_MAXPOOL(xnnpack_sys_s8_maxpool_minmax_ukernel__avx512bw) {
  POOL(SIGNED);
}

U8_MAXPOOL(xnnpack_sys_u8_maxpool_minmax_ukernel__avx512bw) {
  POOL(UNSIGNED);
}
