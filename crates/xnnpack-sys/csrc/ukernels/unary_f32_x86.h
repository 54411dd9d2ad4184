// Logarithm, reciprocal square root and exponential function of floats: included by a file for each instruction set, which
// defines `ISA`.
//
// XNNPACK's logarithm is wrong for NaN and loses digits near 1, and its root multiplies infinity by 0. Here errors are below 1 unit
// in the last place of logarithms. Those of reciprocal square roots are below 0.501 with FMA and 1.5 without, and for denormals. No
// result depends on an element's neighbours. With SSE4.1 XNNPACK's logarithm takes two thirds of the time.

#include <float.h>
#include <math.h>

#include "ukernels/exp_f32_x86.h"

#ifdef __AVX__

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
  low = vfloat_add_product(low, POLYNOMIAL(coefficients, x.fraction), square);
  return vfloat_add_product(VINT(add_ps, x.fraction, low), x.exponent, VINT(set1_ps, LN2_HIGH));
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

#else

// Sign bits are set where an element is negative, 0, the least normal float or denormal, infinite or NaN.
static XNN_INLINE vfloat outside_of_ordinary(vfloat x) {
  return VINT(or_ps, vfloat_not_less(VINT(set1_ps, FLT_MIN), x), vfloat_not_less(x, VINT(set1_ps, INFINITY)));
}

#ifdef WITHOUT_INTEGERS

static XNN_INLINE struct parts ordinary_parts(vfloat x) {
  const vfloat one = VINT(set1_ps, 1.0f);
  const vfloat infinity = VINT(set1_ps, INFINITY);
  const vfloat shifted = VINT(cvtepi32_ps, vint_of_bits(VINT(and_ps, x, infinity)));
  const vfloat exponent = VINT(sub_ps, VINT(mul_ps, shifted, VINT(set1_ps, 0x1p-23f)), VINT(set1_ps, 127.0f));
  const vfloat mantissa = VINT(or_ps, VINT(andnot_ps, infinity, x), one);
  const vfloat is_large = vfloat_not_less(mantissa, VINT(set1_ps, 1.5f));
  const vfloat half = VINT(mul_ps, mantissa, VINT(set1_ps, 0.5f));
  return (struct parts) {
      .exponent = VINT(add_ps, exponent, VINT(and_ps, is_large, one)),
      .fraction = VINT(sub_ps, VINT(sub_ps, mantissa, VINT(and_ps, is_large, half)), one)};
}

#else

static XNN_INLINE struct parts ordinary_parts(vfloat x) {
  const vint bits = vint_of_bits(x);
  const vint above = VINT(sub_epi32, bits, vint_of_bits(VINT(set1_ps, 0.75f)));
  const vint mantissa = VINT(sub_epi32, bits, VINT_BITS(and, above, VINT(set1_epi32, (int32_t) 0xFF800000)));
  return (struct parts) {
      .exponent = VINT(cvtepi32_ps, VINT(srai_epi32, above, 23)),
      .fraction = VINT(sub_ps, vfloat_of_bits(mantissa), VINT(set1_ps, 1.0f))};
}

#endif

static XNN_INLINE vfloat ordinary_logarithm(vfloat x) { return log_of_parts(ordinary_parts(x)); }

// Elements that are not ordinary do not change the results of others.
static XNN_INLINE vfloat logarithm(vfloat x) {
  const vfloat result = ordinary_logarithm(x);
  const int others = VINT(movemask_ps, outside_of_ordinary(x));
  if (others == 0) {
    return result;
  }
  float elements[VECTOR_LANES];
  float results[VECTOR_LANES];
  VINT(storeu_ps, elements, x);
  VINT(storeu_ps, results, result);
  for (size_t i = 0; i < VECTOR_LANES; i++) {
    if ((others >> i & 1) != 0) {
      results[i] = logf(elements[i]);
    }
  }
  return VINT(loadu_ps, results);
}

#endif

UNARY_BY_KIND(vlog, outside_of_ordinary, logarithm)

#endif

#ifdef __AVX512F__

static XNN_INLINE vfloat rough_reciprocal_root(vfloat x) { return _mm512_rsqrt14_ps(x); }

static XNN_INLINE bool is_refined(vfloat y) { return _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q) == 0; }

static XNN_INLINE vfloat refined_or_quotient(vfloat y, vfloat x) {
  const __mmask16 others = _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q);
  return _mm512_mask_div_ps(y, others, _mm512_set1_ps(1.0f), _mm512_sqrt_ps(x));
}

#else

static XNN_INLINE vfloat rough_reciprocal_root(vfloat x) { return VINT(rsqrt_ps, x); }

// NaN where a root is not refined.
static XNN_INLINE vfloat nan_if_not_refined(vfloat y) {
#ifdef __FMA__
  return y;
#else
  return VINT(sub_ps, y, y);
#endif
}

static XNN_INLINE bool is_refined(vfloat y) {
  y = nan_if_not_refined(y);
  return !has_sign(vfloat_unordered(y, y));
}

static XNN_INLINE vfloat refined_or_quotient(vfloat y, vfloat x) {
  const vfloat others = vfloat_unordered(nan_if_not_refined(y), nan_if_not_refined(y));
  const vfloat quotient = VINT(div_ps, VINT(set1_ps, 1.0f), VINT(sqrt_ps, x));
  return VINT(or_ps, VINT(and_ps, others, quotient), VINT(andnot_ps, others, y));
}

#endif

// Improves an approximation whose relative error is at most 2^-11. Those for 0, denormals, infinity and negative numbers are 0, infinite or
// NaN, and become NaN, or without FMA infinite for denormals.
static XNN_INLINE vfloat refined_reciprocal_root(vfloat x) {
  const vfloat y = rough_reciprocal_root(x);
  const vfloat root = VINT(mul_ps, x, y);
  // 1 - x y^2
  vfloat rest = vfloat_sub_product(VINT(set1_ps, 1.0f), root, y);
#if defined(__FMA__) || defined(__AVX512F__)
  const vfloat rounding = VINT(fmsub_ps, x, y, root);
  rest = VINT(fnmadd_ps, rounding, y, rest);
#endif
  const vfloat factor = vfloat_add_product(VINT(set1_ps, 0.5f), rest, VINT(set1_ps, 0.375f));
  return vfloat_add_product(y, VINT(mul_ps, y, rest), factor);
}

static XNN_INLINE vfloat reciprocal_root(vfloat x) { return refined_or_quotient(refined_reciprocal_root(x), x); }

#define UNROLL _Pragma("GCC unroll 4")

F32_UNARY(WITH_ISA(xnnpack_sys_f32_vrsqrt_ukernel__)) {
  enum { VECTORS = 4, BLOCK = VECTORS * sizeof(vfloat) };
  const char* from = input;
  char* to = output;
  for (; batch >= BLOCK; batch -= BLOCK, from += BLOCK, to += BLOCK) {
    vfloat x[VECTORS];
    vfloat roots[VECTORS];
    UNROLL for (size_t i = 0; i < VECTORS; i++) {
      x[i] = VINT(loadu_ps, (const float*) from + i * VECTOR_LANES);
      roots[i] = refined_reciprocal_root(x[i]);
    }
    // A sum is NaN or infinite if a root is. Roots are less than 2^64.
    const vfloat sum = VINT(add_ps, VINT(add_ps, roots[0], roots[1]), VINT(add_ps, roots[2], roots[3]));
    const bool are_refined = is_refined(sum);
    UNROLL for (size_t i = 0; i < VECTORS; i++) {
      if XNN_UNLIKELY(!are_refined) {
        roots[i] = refined_or_quotient(roots[i], x[i]);
      }
      VINT(storeu_ps, (float*) to + i * VECTOR_LANES, roots[i]);
    }
  }
  if (batch != 0) {
    apply(reciprocal_root, batch, (const float*) from, (float*) to);
  }
}
