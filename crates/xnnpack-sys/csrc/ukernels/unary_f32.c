// Functions of floats for AVX512F, and those of `unary_f32_x86.h`.
//
// - Conversion to integers: XNNPACK calls a function of the C library for each element, and rounds differently when it quantizes
//   (`quantize_qd8.c`).
// - Logistic function and square root: XNNPACK's are NaN for large arguments, and for the root of infinity. Its logistic function
//   takes 1.15 times as long.
// - Range of a row, which is NaN if an element is (`special_f32.c`).

#define ISA avx512f

#include "ukernels/unary_f32_x86.h"

#include "ukernels/softmax_f32_x86.h"

#include <stdint.h>

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "xnnpack/vunary.h"

#include "hooks/quantize_qd8.h"

#define LANES 16

// Adds `half` away from 0, and truncates.
static XNN_INLINE __m512i to_nearest(__m512 x, float half) {
  // The bits of `half`, and the sign of `x`.
  const __m512i halves = _mm512_castps_si512(_mm512_set1_ps(half));
  const __m512i added = _mm512_ternarylogic_epi32(halves, _mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN), 0xF8);
  return _mm512_cvttps_epi32(_mm512_add_ps(x, _mm512_castsi512_ps(added)));
}

// Rounds to the nearest integer, ties away from 0; NaN becomes 0. Floats from 2^31 on become the largest float below, as in XNNPACK.
static XNN_INLINE __m512 nearest(__m512 x) {
  x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  x = clamp(x, _mm512_set1_ps(-0x1p31f), _mm512_set1_ps(0x1.FFFFFEp+30f));
  // Just less than a half, so that no sum rounds up to the next integer.
  return _mm512_castsi512_ps(to_nearest(x, 0x1.FFFFFEp-2f));
}

static XNN_INLINE __m512 root(__m512 x) { return _mm512_sqrt_ps(x); }

// Computes the root, bit for bit, from an approximation.
static XNN_INLINE __m512 refined_root(__m512 x) {
  // Otherwise parts of the second step would be below the least float.
  const __mmask16 are_tiny = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p-90f), _CMP_LT_OQ);
  x = _mm512_mask_mul_ps(x, are_tiny, x, _mm512_set1_ps(0x1p64f));
  const __m512 half = _mm512_set1_ps(0.5f);
  const __m512 y = _mm512_rsqrt14_ps(x);
  __m512 sum = _mm512_mul_ps(x, y);
  __m512 factor = _mm512_mul_ps(y, half);
  // Both are nearly exact after the first step, and the second step rounds the exact root.
  const __m512 rest = _mm512_fnmadd_ps(sum, factor, half);
  sum = _mm512_fmadd_ps(sum, rest, sum);
  factor = _mm512_fmadd_ps(factor, rest, factor);
  sum = _mm512_fmadd_ps(_mm512_fnmadd_ps(sum, sum, x), factor, sum);
  // Takes `x` where it is 0 or infinite.
  sum = _mm512_fixupimm_ps(sum, x, _mm512_set1_epi32(0x00100100), 0);
  return _mm512_mask_mul_ps(sum, are_tiny, sum, _mm512_set1_ps(0x1p-32f));
}

// 2^(i / 32)
static const float fractional_powers[2 * LANES] = {
    0x1.000000p+0f, 0x1.059B0Ep+0f, 0x1.0B5586p+0f, 0x1.11301Ep+0f, 0x1.172B84p+0f, 0x1.1D4874p+0f, 0x1.2387A6p+0f, 0x1.29E9E0p+0f,
    0x1.306FE0p+0f, 0x1.371A74p+0f, 0x1.3DEA64p+0f, 0x1.44E086p+0f, 0x1.4BFDAEp+0f, 0x1.5342B6p+0f, 0x1.5AB07Ep+0f, 0x1.6247ECp+0f,
    0x1.6A09E6p+0f, 0x1.71F75Ep+0f, 0x1.7A1148p+0f, 0x1.82589Ap+0f, 0x1.8ACE54p+0f, 0x1.93737Cp+0f, 0x1.9C4918p+0f, 0x1.A5503Cp+0f,
    0x1.AE89FAp+0f, 0x1.B7F770p+0f, 0x1.C199BEp+0f, 0x1.CB720Ep+0f, 0x1.D5818Ep+0f, 0x1.DFC974p+0f, 0x1.EA4AFAp+0f, 0x1.F50766p+0f};

// 1 / (1 + e^-x), with e^-x = 2^n * (1 - t + t^2 / 2), where `n` is a multiple of 1/32 and |t| <= ln(2) / 64. Errors are below 2 units in
// the last place.
static XNN_INLINE __m512 logistic(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  // A sum with this has the nearest multiple of 1/32 in its lowest bits.
  const __m512 rounding_term = _mm512_set1_ps(0x1.8p18f);
  // Beyond these, e^-x is infinite and 0.
  x = clamp(x, _mm512_set1_ps(MIN_EXPONENT), _mm512_set1_ps(-MIN_EXPONENT));
  const __m512 sum = _mm512_fnmadd_ps(x, _mm512_set1_ps(LOG2_E), rounding_term);
  const __m512 fraction = _mm512_permutex2var_ps(
      _mm512_loadu_ps(fractional_powers), _mm512_castps_si512(sum), _mm512_loadu_ps(fractional_powers + LANES));
  const __m512 n = _mm512_sub_ps(sum, rounding_term);
  const __m512 t = _mm512_fmadd_ps(n, _mm512_set1_ps(LN2), x);
  // The factor of `t` is that of the polynomial with the least error, not 1.
  const __m512 factor = _mm512_fmadd_ps(t, _mm512_set1_ps(0.5f), _mm512_set1_ps(-0x1.0000F6p+0f));
  const __m512 power = _mm512_fmadd_ps(_mm512_mul_ps(t, fraction), factor, fraction);
  return _mm512_div_ps(one, _mm512_add_ps(_mm512_scalef_ps(power, n), one));
}

#include "ukernels/gelu_f32_x86.h"

UNARY_OF_VECTORS(s32_vcvt, nearest)
UNARY_OF_VECTORS(vsigmoid, logistic)

// The processor computes a root by its unit for divisions while it computes another one by products.
F32_UNARY(xnnpack_sys_f32_vsqrt_ukernel__avx512f) {
  enum { PAIR = 2 * LANES * sizeof(float) };
  const char* from = input;
  char* to = output;
  for (; batch >= PAIR; batch -= PAIR, from += PAIR, to += PAIR) {
    apply(root, PAIR / 2, (const float*) from, (float*) to);
    apply(refined_root, PAIR / 2, (const float*) (from + PAIR / 2), (float*) (to + PAIR / 2));
  }
  if (batch != 0) {
    apply(root, batch, (const float*) from, (float*) to);
  }
}

// The smallest and the largest element in each lane, and the lanes that had no NaN.
struct range {
  __m512 least;
  __m512 most;
  __mmask16 ordered;
};

static XNN_INLINE void widen(struct range* range, __m512 a, __m512 b) {
  // Otherwise compilers load them from memory for each instruction.
  __asm__("" : "+v"(a), "+v"(b));
  range->least = _mm512_min_ps(range->least, _mm512_min_ps(a, b));
  range->most = _mm512_max_ps(range->most, _mm512_max_ps(a, b));
  range->ordered = _mm512_mask_cmp_ps_mask(range->ordered, a, b, _CMP_ORD_Q);
}

F32_UNARY(xnnpack_sys_f32_rminmax_ukernel__avx512f) {
  const float* from = input;
  const __m512 first = _mm512_set1_ps(*from);
  struct range even = {.least = first, .most = first, .ordered = ALL_LANES};
  struct range odd = even;
  size_t count = batch / sizeof(float);
  for (; count >= 4 * LANES; count -= 4 * LANES, from += 4 * LANES) {
    widen(&even, _mm512_loadu_ps(from), _mm512_loadu_ps(from + LANES));
    widen(&odd, _mm512_loadu_ps(from + 2 * LANES), _mm512_loadu_ps(from + 3 * LANES));
  }
  for (; count >= LANES; count -= LANES, from += LANES) {
    const __m512 x = _mm512_loadu_ps(from);
    widen(&even, x, x);
  }
  const __m512 rest = _mm512_mask_loadu_ps(first, (1 << count) - 1, from);
  widen(&even, rest, first);
  float* range = output;
  if ((even.ordered & odd.ordered) == ALL_LANES) {
    range[0] = _mm512_reduce_min_ps(_mm512_min_ps(even.least, odd.least));
    range[1] = _mm512_reduce_max_ps(_mm512_max_ps(even.most, odd.most));
  } else {
    range[0] = range[1] = NAN;
  }
}

// Parameters of quantization, in each lane.
struct quantizer {
  __m512 scale;
  __m512 low;
  __m512 high;
  __m512i zero_point;
};

static XNN_INLINE __m512i quantize(const struct quantizer* by, __m512 x) {
  x = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(x, by->scale), by->low), by->high);
  return _mm512_add_epi32(to_nearest(x, 0.5f), by->zero_point);
}

void xnnpack_sys_avx512_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset)
{
  const struct quantizer by = {
      .scale = _mm512_set1_ps(scale),
      .low = _mm512_set1_ps((float) (INT8_MIN - zero_point)),
      .high = _mm512_set1_ps((float) (INT8_MAX - zero_point)),
      .zero_point = _mm512_set1_epi32(zero_point + offset),
  };
  // Stores with a mask are much slower on some processors.
  for (; count >= LANES; count -= LANES, input += LANES, output += LANES) {
    _mm_storeu_si128((__m128i*) output, _mm512_cvtepi32_epi8(quantize(&by, _mm512_loadu_ps(input))));
  }
  const __mmask16 lanes = (1 << count) - 1;
  _mm512_mask_cvtepi32_storeu_epi8(output, lanes, quantize(&by, _mm512_maskz_loadu_ps(lanes, input)));
}
