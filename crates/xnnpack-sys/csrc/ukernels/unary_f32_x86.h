// Logarithm, reciprocal square root and exponential function of floats: included by a file for each instruction set with FMA, which
// defines `ISA`.
//
// XNNPACK's logarithm is wrong for NaN and loses digits near 1, and its root multiplies infinity by 0. Here errors are below 1 unit
// in the last place of logarithms and 0.501 of reciprocal square roots (1.5 for denormals). No result depends on an element's
// neighbours.

#include <math.h>

#include "ukernels/exp_f32_x86.h"

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

#ifdef __AVX512F__

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

#endif

UNARY_BY_KIND(vlog, outside_of_ordinary, logarithm)
UNARY_BY_KIND(vrsqrt, outside_of_ordinary, reciprocal_root)
