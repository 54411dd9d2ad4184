// Requantization that the microkernels of 8-bit integers share: sums of products become 8-bit integers.

#ifndef XNNPACK_SYS_Q8_H
#define XNNPACK_SYS_Q8_H

#include <stdint.h>

#include <immintrin.h>

#include "ukernels/fixed_point.h"
#include "ukernels/microkernel.h"
#include "xnnpack/microparams.h"

enum kind {
  // int8, weights without zero point, a scale for each channel behind a block's weights. Sums are rounded once, from floats, as by
  // XNNPACK's microkernels for AVX512.
  SIGNED,
  // uint8, one zero point and one scale for all weights. Sums are rounded as in TFLite's reference kernels; in `rndnu_scalar`, `shift`
  // is the exponent of a `fixed_point`, and `rounding` how often to round.
  UNSIGNED,
  // int8 images quantized at run time, weights as for SIGNED; sums become floats.
  DYNAMIC,
  // int8 rows quantized at run time: as DYNAMIC, with a zero point and a scale for each row (`gemm_q8_bytes.h` only).
  DYNAMIC_ROWS,
};

// The difference of signed and unsigned bytes: products are of unsigned inputs and signed weights.
#define OFFSET 128

struct requantization {
  vint zero_point;
  // The zero point in 16 bits, and the lower bound of outputs in bytes; for UNSIGNED the upper bound, too.
  vint zero_point_16;
  vint least;
  vint most;
  // SIGNED.
  vfloat min_less_zero_point;
  vfloat max_less_zero_point;
  // UNSIGNED.
  struct scaling scaling;
  vint min;
  __m128i max;
};

static XNN_INLINE struct requantization signed_requantization(const union xnn_qs8_qc8w_conv_minmax_params* params) {
  const int32_t zero_point = params->fp32_scalar.output_zero_point;
  return (struct requantization) {
      .zero_point = VINT(set1_epi32, zero_point),
      .zero_point_16 = VINT(set1_epi16, (int16_t) zero_point),
      .least = VINT(set1_epi8, (int8_t) params->fp32_scalar.output_min),
      .min_less_zero_point = VINT(set1_ps, (float) (params->fp32_scalar.output_min - zero_point)),
      .max_less_zero_point = VINT(set1_ps, (float) (params->fp32_scalar.output_max - zero_point)),
  };
}

static XNN_INLINE struct requantization unsigned_requantization(const union xnn_qu8_conv_minmax_params* params) {
  const struct fixed_point scale = {params->rndnu_scalar.multiplier, (int32_t) params->rndnu_scalar.shift};
  return (struct requantization) {
      .zero_point = VINT(set1_epi32, params->rndnu_scalar.output_zero_point),
      .zero_point_16 = VINT(set1_epi16, (int16_t) params->rndnu_scalar.output_zero_point),
      .least = VINT(set1_epi8, (int8_t) params->rndnu_scalar.output_min),
      .most = VINT(set1_epi8, (int8_t) params->rndnu_scalar.output_max),
      .scaling = params->rndnu_scalar.rounding == 1 ? scaling_once(scale) : scaling(scale),
      .min = VINT(set1_epi32, params->rndnu_scalar.output_min),
      .max = _mm_set1_epi8((int8_t) params->rndnu_scalar.output_max),
  };
}

// Sums at the output's scale, without its zero point. SIGNED: floats below the smallest integer become the smallest integer.
static XNN_INLINE vint rescale(enum kind kind, const struct requantization* to, vint sums, vfloat scale) {
  if (kind == SIGNED) {
    const vfloat product = VINT(mul_ps, VINT(cvtepi32_ps, sums), scale);
    return VINT(cvtps_epi32, VINT(min_ps, product, to->max_less_zero_point));
  }
  return scale_sums(&to->scaling, sums);
}

#ifndef __AVX512BW__

// Converts two vectors of sums, in order, to twice VECTOR_LANES bytes. SIGNED: `scales` are the channels'.
static XNN_INLINE __m128i requantize_row(
    enum kind kind, const struct requantization* to, const vint sums[2], const vfloat scales[2])
{
  const vint packed = VINT(packs_epi32, rescale(kind, to, sums[0], scales[0]), rescale(kind, to, sums[1], scales[1]));
#ifdef __AVX2__
  // Packing takes four elements of each operand in turn.
  const __m256i words = _mm256_adds_epi16(_mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)), to->zero_point_16);
  const __m128i lower = _mm256_castsi256_si128(words);
  const __m128i upper = _mm256_extracti128_si256(words, 1);
  const __m128i least = _mm256_castsi256_si128(to->least);
#else
  const __m128i lower = _mm_adds_epi16(packed, to->zero_point_16);
  const __m128i upper = lower;
  const __m128i least = to->least;
#endif
  if (kind == SIGNED) {
    return _mm_max_epi8(_mm_packs_epi16(lower, upper), least);
  }
  return _mm_min_epu8(_mm_max_epu8(_mm_packus_epi16(lower, upper), least), to->max);
}

#else

// Stores 16 sums, or those of `lanes`. SIGNED: `scale` is the channels'.
static XNN_INLINE void requantize(
    enum kind kind, const struct requantization* to, __m512i sums, __m512 scale, void* output, __mmask16 lanes)
{
  __m128i bytes;
  if (kind == SIGNED) {
    __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scale);
    scaled = _mm512_min_ps(_mm512_max_ps(scaled, to->min_less_zero_point), to->max_less_zero_point);
    bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(scaled), to->zero_point));
  } else {
    const __m512i scaled = _mm512_add_epi32(scale_sums(&to->scaling, sums), to->zero_point);
    bytes = _mm_min_epu8(_mm512_cvtusepi32_epi8(_mm512_max_epi32(scaled, to->min)), to->max);
  }
  if (lanes == ALL_LANES) {
    _mm_storeu_si128((__m128i*) output, bytes);
  } else {
    _mm_mask_storeu_epi8(output, lanes, bytes);
  }
}

// Converts two rows of 32 sums. SIGNED: `scales` are the channels'.
static XNN_INLINE __m512i requantize_two(
    enum kind kind, const struct requantization* to, const __m512i front[2], const __m512i back[2], const __m512 scales[2])
{
  __m512i scaled[2][2];
  _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
    const __m512i sums = i < 2 ? front[i] : back[i % 2];
    scaled[i / 2][i % 2] = rescale(kind, to, sums, scales[i % 2]);
  }
  __m512i row[2];
  _Pragma("GCC unroll 2") for (size_t i = 0; i < 2; i++) {
    row[i] = _mm512_adds_epi16(_mm512_packs_epi32(scaled[i][0], scaled[i][1]), to->zero_point_16);
  }
  // Packing takes four elements of each operand in turn.
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  if (kind == SIGNED) {
    return _mm512_max_epi8(_mm512_permutexvar_epi32(order, _mm512_packs_epi16(row[0], row[1])), to->least);
  }
  const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(row[0], row[1]));
  return _mm512_min_epu8(_mm512_max_epu8(bytes, to->least), to->most);
}

#endif

#endif
