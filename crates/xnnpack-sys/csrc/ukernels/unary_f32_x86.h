// Exponential function, logarithm and reciprocal square root of floats: included by a file for each instruction set, which defines
// `ISA`.
//
// XNNPACK calls a function of the C library for each exponential, its logarithm is wrong for NaN and loses digits near 1, and its
// root multiplies infinity by 0. Here errors are below 2 units in the last place of exponentials, 1 of logarithms and 0.501 of
// reciprocal square roots (1.5 for denormals). No result depends on an element's neighbours. Logarithms and roots need FMA.

#include <assert.h>
#include <math.h>

#include "ukernels/unary_f32.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

#define LOG2_E 0x1.715476p+0f
// The logarithm of 2 in two parts. The first has few enough digits for exact products with exponents.
#define LN2_HIGH 0x1.62E4p-1f
#define LN2_LOW 0x1.7F7D1Cp-20f

// Beyond these, results are infinite and 0.
#define MAX_EXPONENT 89.0f
#define MIN_EXPONENT -104.0f

// Applies `function` to one vector after the other.
static XNN_INLINE void apply(vfloat (*function)(vfloat), size_t batch, const float* from, float* to) {
  assert(batch != 0 && batch % sizeof(float) == 0);
  size_t count = batch / sizeof(float);
  for (; count >= VECTOR_LANES; count -= VECTOR_LANES, from += VECTOR_LANES, to += VECTOR_LANES) {
    vfloat x = vfloat_load(from, VECTOR_LANES);
    // Otherwise compilers load it from memory for each instruction.
    __asm__("" : "+x"(x));
    vfloat_store(to, function(x), VECTOR_LANES);
  }
  if (count != 0) {
    vfloat_store(to, function(vfloat_load(from, count)), count);
  }
}

// Computes a polynomial; its first coefficient is that of the highest power.
static XNN_INLINE vfloat polynomial(size_t count, const float* coefficients, vfloat x) {
  vfloat sum = VINT(set1_ps, coefficients[0]);
  _Pragma("GCC unroll 8") for (size_t i = 1; i < count; i++) {
    sum = vfloat_add_product(VINT(set1_ps, coefficients[i]), sum, x);
  }
  return sum;
}
#define POLYNOMIAL(coefficients, x) polynomial(sizeof(coefficients) / sizeof(float), coefficients, x)

#if defined(__FMA__) || defined(__AVX512F__)

// A number as (1 + fraction) * 2^exponent, with a fraction from -1/4 to 1/2.
struct parts {
  vfloat exponent;
  vfloat fraction;
};

static XNN_INLINE vfloat log_of_parts(struct parts x) {
  // (log(1 + x) - x) / x^2, so that the relative error of log(1 + x) is below 6e-9.
  static const float coefficients[] = {-0.045074802f, 0.10463026f,  -0.13161197f, 0.14478396f, -0.16647312f,
                                       0.19990861f,   -0.25000096f, 0.33333449f,  -0.5f};
  const vfloat square = VINT(mul_ps, x.fraction, x.fraction);
  vfloat low = VINT(mul_ps, x.exponent, VINT(set1_ps, LN2_LOW));
  low = VINT(fmadd_ps, POLYNOMIAL(coefficients, x.fraction), square, low);
  return VINT(fmadd_ps, x.exponent, VINT(set1_ps, LN2_HIGH), VINT(add_ps, x.fraction, low));
}

// Improves an approximation of the reciprocal square root whose relative error is at most 2^-11.
static XNN_INLINE vfloat refined_reciprocal_root(vfloat x, vfloat y) {
  const vfloat root = VINT(mul_ps, x, y);
  // 1 - x y^2, with the rounding error of the root.
  const vfloat rounding = VINT(fmsub_ps, x, y, root);
  vfloat rest = VINT(fnmadd_ps, root, y, VINT(set1_ps, 1.0f));
  rest = VINT(fnmadd_ps, rounding, y, rest);
  const vfloat factor = VINT(fmadd_ps, rest, VINT(set1_ps, 0.375f), VINT(set1_ps, 0.5f));
  return VINT(fmadd_ps, VINT(mul_ps, y, rest), factor, y);
}

#endif

#ifdef __AVX512F__

static XNN_INLINE vfloat nearest_integer(vfloat x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static XNN_INLINE vfloat times_power_of_two(vfloat x, vfloat n) { return _mm512_scalef_ps(x, n); }

// The exponent of 0 is -infinity, that of infinity infinity. The fraction of negative numbers is NaN.
static XNN_INLINE vfloat logarithm(vfloat x) {
  const vfloat one = _mm512_set1_ps(1.0f);
  const vfloat mantissa = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  vfloat exponent = _mm512_getexp_ps(x);
  exponent = _mm512_mask_add_ps(exponent, _mm512_cmp_ps_mask(mantissa, one, _CMP_LT_OQ), exponent, one);
  return log_of_parts((struct parts) {.exponent = exponent, .fraction = _mm512_sub_ps(mantissa, one)});
}

// The approximations of 0, infinity and NaN are the results; they cannot be improved.
static XNN_INLINE vfloat reciprocal_root(vfloat x) {
  const vfloat rough = _mm512_rsqrt14_ps(x);
  const vfloat refined = refined_reciprocal_root(x, rough);
  return _mm512_mask_mov_ps(rough, _mm512_cmp_ps_mask(refined, refined, _CMP_ORD_Q), refined);
}

#else

#ifdef __AVX2__
#define AS_FLOATS(x) _mm256_castsi256_ps(x)
#else
#define AS_FLOATS(x) _mm_castsi128_ps(x)
#endif

static XNN_INLINE vfloat nearest_integer(vfloat x) {
  return VINT(round_ps, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// Multiplies by two powers, because 2^n may be no float.
static XNN_INLINE vfloat times_power_of_two(vfloat x, vfloat n) {
  const vint exponent = VINT(cvtps_epi32, n);
  const vint half = VINT(srai_epi32, exponent, 1);
  const vint halves[] = {half, VINT(sub_epi32, exponent, half)};
  _Pragma("GCC unroll 2") for (size_t i = 0; i < 2; i++) {
    const vint bits = VINT(slli_epi32, VINT(add_epi32, halves[i], VINT(set1_epi32, 127)), 23);
    x = VINT(mul_ps, x, AS_FLOATS(bits));
  }
  return x;
}

#endif

#if defined(__AVX2__) && !defined(__AVX512F__)

// Sign bits are set where an element is negative, 0, denormal, infinite or NaN.
static XNN_INLINE vint outside_of_ordinary(vfloat x) {
  const vint bits = _mm256_castps_si256(x);
  const vint below = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x00800000));
  const vint above = _mm256_sub_epi32(_mm256_set1_epi32(0x7F7FFFFF), bits);
  return _mm256_or_si256(below, above);
}

// A bit for each element.
static XNN_INLINE int signs_of(vint values) { return _mm256_movemask_ps(_mm256_castsi256_ps(values)); }

static XNN_INLINE vfloat ordinary_logarithm(vfloat x) {
  const vint bits = _mm256_castps_si256(x);
  const vint above = _mm256_sub_epi32(bits, _mm256_castps_si256(_mm256_set1_ps(0.75f)));
  const vint mantissa = _mm256_sub_epi32(bits, _mm256_and_si256(above, _mm256_set1_epi32((int32_t) 0xFF800000)));
  return log_of_parts((struct parts) {
      .exponent = _mm256_cvtepi32_ps(_mm256_srai_epi32(above, 23)),
      .fraction = _mm256_sub_ps(_mm256_castsi256_ps(mantissa), _mm256_set1_ps(1.0f))});
}

// Elements that are not ordinary do not change the results of others.
static XNN_INLINE vfloat logarithm(vfloat x) {
  const vfloat result = ordinary_logarithm(x);
  const int others = signs_of(outside_of_ordinary(x));
  if (others == 0) {
    return result;
  }
  float elements[VECTOR_LANES];
  float results[VECTOR_LANES];
  _mm256_storeu_ps(elements, x);
  _mm256_storeu_ps(results, result);
  for (size_t i = 0; i < VECTOR_LANES; i++) {
    if ((others >> i & 1) != 0) {
      results[i] = logf(elements[i]);
    }
  }
  return _mm256_loadu_ps(results);
}

static XNN_INLINE vfloat ordinary_reciprocal_root(vfloat x) { return refined_reciprocal_root(x, _mm256_rsqrt_ps(x)); }

static XNN_INLINE vfloat reciprocal_root(vfloat x) {
  const vfloat other = _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_sqrt_ps(x));
  return _mm256_blendv_ps(ordinary_reciprocal_root(x), other, _mm256_castsi256_ps(outside_of_ordinary(x)));
}

// Applies `ordinary` to blocks with no other elements than ordinary ones, and `any` to the rest.
static XNN_INLINE void apply_by_kind(
    vfloat (*ordinary)(vfloat), vfloat (*any)(vfloat), size_t batch, const float* from, float* to)
{
  enum { BLOCK = 32 * VECTOR_LANES };
  size_t count = batch / sizeof(float);
  for (; count >= BLOCK; count -= BLOCK, from += BLOCK, to += BLOCK) {
    vint outside = vint_zero();
    for (size_t i = 0; i < BLOCK; i += VECTOR_LANES) {
      outside = _mm256_or_si256(outside, outside_of_ordinary(_mm256_loadu_ps(from + i)));
    }
    if (signs_of(outside) == 0) {
      apply(ordinary, BLOCK * sizeof(float), from, to);
    } else {
      apply(any, BLOCK * sizeof(float), from, to);
    }
  }
  if (count != 0) {
    apply(any, count * sizeof(float), from, to);
  }
}

#endif

// Computes 2^n * e^r with an integer n and |r| <= ln(2) / 2. The error of the series for e^r is at most 5e-9.
static XNN_INLINE vfloat exponential(vfloat x) {
  static const float coefficients[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f};
  x = vfloat_clamp(x, VINT(set1_ps, MIN_EXPONENT), VINT(set1_ps, MAX_EXPONENT));
  const vfloat n = nearest_integer(VINT(mul_ps, x, VINT(set1_ps, LOG2_E)));
  vfloat r = vfloat_sub_product(x, n, VINT(set1_ps, LN2_HIGH));
  r = vfloat_sub_product(r, n, VINT(set1_ps, LN2_LOW));
  return times_power_of_two(POLYNOMIAL(coefficients, r), n);
}

#define UNARY_OF_VECTORS(name, function) \
  F32_UNARY(WITH_ISA(xnnpack_sys_f32_##name##_ukernel__)) { apply(function, batch, input, output); }
#ifdef __AVX512F__
#define UNARY_BY_KIND UNARY_OF_VECTORS
#else
#define UNARY_BY_KIND(name, function) \
  F32_UNARY(WITH_ISA(xnnpack_sys_f32_##name##_ukernel__)) { \
    apply_by_kind(ordinary_##function, function, batch, input, output); \
  }
#endif

UNARY_OF_VECTORS(vexp, exponential)
#if defined(__FMA__) || defined(__AVX512F__)
UNARY_BY_KIND(vlog, logarithm)
UNARY_BY_KIND(vrsqrt, reciprocal_root)
#endif
