// Functions of floats for AVX512F.
//
// - Exponential function, and conversion to integers: XNNPACK calls a function of the C library for each element, and rounds
//   differently when it quantizes (`quantize_qd8.c`).
// - Logistic function and square roots: XNNPACK's are NaN for large arguments, and for roots of 0.
// - Range of a row, which is NaN if an element is (`special_f32.c`).

#include "ukernels/unary_f32.h"

#include <math.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "xnnpack/vunary.h"

#include "hooks/quantize_qd8.h"

#define LANES 16

#define LOG2_E 0x1.715476p+0f
// The logarithm of 2 in two parts. The first has few enough digits for exact products with exponents.
#define LN2_HIGH 0x1.62E4p-1f
#define LN2_LOW 0x1.7F7D1Cp-20f

// Beyond these, results are infinite and 0.
#define MAX_EXPONENT 89.0f
#define MIN_EXPONENT -104.0f

// Computes 2^n * e^r with an integer n and |r| <= ln(2) / 2. The error of the series for e^r is at most 5e-9.
static XNN_INLINE __m512 exponential(__m512 x) {
  x = clamp(x, _mm512_set1_ps(MIN_EXPONENT), _mm512_set1_ps(MAX_EXPONENT));
  const __m512 n = _mm512_roundscale_ps(
      _mm512_mul_ps(x, _mm512_set1_ps(LOG2_E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN2_HIGH), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN2_LOW), r);
  static const float coefficients[] = {
      1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f,
  };
  __m512 sum = _mm512_set1_ps(1.0f / 5040);
  for (size_t i = 0; i < sizeof(coefficients) / sizeof(coefficients[0]); i++) {
    sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(coefficients[i]));
  }
  return _mm512_scalef_ps(sum, n);
}

// Adds `half` away from 0, and truncates.
static XNN_INLINE __m512i to_nearest(__m512 x, float half) {
  const __m512i sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));
  const __m512i added = _mm512_or_si512(sign, _mm512_castps_si512(_mm512_set1_ps(half)));
  return _mm512_cvttps_epi32(_mm512_add_ps(x, _mm512_castsi512_ps(added)));
}

// Rounds to the nearest integer, ties away from 0; NaN becomes 0. Floats from 2^31 on become the largest float below, as in XNNPACK.
static XNN_INLINE __m512 nearest(__m512 x) {
  x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  x = clamp(x, _mm512_set1_ps(-0x1p31f), _mm512_set1_ps(0x1.FFFFFEp+30f));
  // Just less than a half, so that no sum rounds up to the next integer.
  return _mm512_castsi512_ps(to_nearest(x, 0x1.FFFFFEp-2f));
}

// Applies `function` to one vector after the other.
static XNN_INLINE void apply(__m512 (*function)(__m512), size_t batch, const float* from, float* to) {
  assert(batch != 0 && batch % sizeof(float) == 0);
  size_t count = batch / sizeof(float);
  for (; count >= LANES; count -= LANES, from += LANES, to += LANES) {
    _mm512_storeu_ps(to, function(_mm512_loadu_ps(from)));
  }
  const __mmask16 rest = (1 << count) - 1;
  _mm512_mask_storeu_ps(to, rest, function(_mm512_maskz_loadu_ps(rest, from)));
}

static XNN_INLINE __m512 root(__m512 x) { return _mm512_sqrt_ps(x); }

static XNN_INLINE __m512 reciprocal_root(__m512 x) {
  return _mm512_div_ps(_mm512_set1_ps(1.0f), _mm512_sqrt_ps(x));
}

// Beyond these, the logistic function is 0 and 1.
static XNN_INLINE __m512 logistic_argument(__m512 x) {
  return clamp(x, _mm512_set1_ps(MIN_EXPONENT), _mm512_set1_ps(-MIN_EXPONENT));
}

void xnnpack_sys_f32_vexp_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params) {
  apply(exponential, batch, input, output);
}

void xnnpack_sys_f32_s32_vcvt_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params) {
  apply(nearest, batch, input, output);
}

void xnnpack_sys_f32_vsqrt_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params) {
  apply(root, batch, input, output);
}

void xnnpack_sys_f32_vrsqrt_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params) {
  apply(reciprocal_root, batch, input, output);
}

void xnnpack_sys_f32_vsigmoid_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params) {
  // Bytes that stay in the cache between the two functions.
  enum { BLOCK = 4096 };
  const char* from = input;
  char* to = output;
  while (batch > 0) {
    const size_t some = batch < BLOCK ? batch : BLOCK;
    apply(logistic_argument, some, (const float*) from, (float*) to);
    xnn_f32_vsigmoid_ukernel__avx512f_rr2_lut32_p2_perm2_scalef_div_u64(some, (float*) to, (float*) to, params);
    batch -= some;
    from += some;
    to += some;
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

void xnnpack_sys_f32_rminmax_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params) {
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

void xnnpack_sys_avx512_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset)
{
  const __m512 low = _mm512_set1_ps((float) (INT8_MIN - zero_point));
  const __m512 high = _mm512_set1_ps((float) (INT8_MAX - zero_point));
  for (size_t i = 0; i < count; i += LANES) {
    const __mmask16 lanes = count - i < LANES ? (1 << (count - i)) - 1 : ALL_LANES;
    __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, input + i), _mm512_set1_ps(scale));
    x = _mm512_min_ps(_mm512_max_ps(x, low), high);
    const __m512i integers = _mm512_add_epi32(to_nearest(x, 0.5f), _mm512_set1_epi32(zero_point + offset));
    _mm512_mask_cvtepi32_storeu_epi8(output + i, lanes, integers);
  }
}
