// Exponential function of floats, and how functions are applied to many: included by a file for each instruction set, which defines
// `ISA`.
//
// XNNPACK calls a function of the C library for each exponential. Here errors are below 2 units in the last place. No result depends
// on an element's neighbours.

#include <assert.h>

#include "ukernels/unary_f32.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

#define LOG2_E 0x1.715476p+0f
// The logarithm of 2, and in two parts, of which the first has few enough digits for exact products with exponents.
#define LN2 0x1.62E43p-1f
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

// Computes a polynomial; its first coefficient is that of the highest power. Pairs of terms are multiplied by powers of the square: half
// as many steps wait for each other. With FMA short polynomials take 4 to 8 % longer in pairs.
static XNN_INLINE vfloat polynomial(size_t count, const float* coefficients, vfloat x) {
#if defined(__FMA__) || defined(__AVX512F__)
  const size_t in_turn = count > 8 ? 2 - count % 2 : count;
#else
  const size_t in_turn = 2 - count % 2;
#endif
  vfloat sum = VINT(set1_ps, coefficients[0]);
  _Pragma("GCC unroll 8") for (size_t i = 1; i < in_turn; i++) {
    sum = vfloat_add_product(VINT(set1_ps, coefficients[i]), sum, x);
  }
  const vfloat square = VINT(mul_ps, x, x);
  _Pragma("GCC unroll 8") for (size_t i = in_turn; i < count; i += 2) {
    const vfloat pair = vfloat_add_product(VINT(set1_ps, coefficients[i + 1]), VINT(set1_ps, coefficients[i]), x);
    sum = vfloat_add_product(pair, sum, square);
  }
  return sum;
}
#define POLYNOMIAL(coefficients, x) polynomial(sizeof(coefficients) / sizeof(float), coefficients, x)

// e^r for |r| <= ln(2) / 2, with a relative error of the polynomial below 4e-9.
static XNN_INLINE vfloat small_exponential(vfloat r) {
  static const float coefficients[] = {0x1.6A23Dp-10f, 0x1.123A2p-7f, 0x1.5558F2p-5f, 0x1.555492p-3f, 0x1.FFFFFCp-2f, 1.0f, 1.0f};
  return POLYNOMIAL(coefficients, r);
}

// Subtracts `n` times the logarithm of 2.
static XNN_INLINE vfloat without_powers_of_two(vfloat x, vfloat n) {
  x = vfloat_sub_product(x, n, VINT(set1_ps, LN2_HIGH));
  return vfloat_sub_product(x, n, VINT(set1_ps, LN2_LOW));
}

static XNN_INLINE vfloat exponential_argument(vfloat x) {
  return vfloat_clamp(x, VINT(set1_ps, MIN_EXPONENT), VINT(set1_ps, MAX_EXPONENT));
}

#ifdef __AVX512F__

static XNN_INLINE vfloat exponential(vfloat x) {
  x = exponential_argument(x);
  const vfloat n = _mm512_roundscale_ps(
      _mm512_mul_ps(x, _mm512_set1_ps(LOG2_E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm512_scalef_ps(small_exponential(without_powers_of_two(x, n)), n);
}

#else

static XNN_INLINE bool has_sign(vfloat values) { return VINT(movemask_ps, values) != 0; }

// Applies `ordinary` to blocks where `outside` returns no sign bit, and `apply_any` to the rest.
static XNN_INLINE void apply_by_kind(
    vfloat (*outside)(vfloat), vfloat (*ordinary)(vfloat), void (*apply_any)(size_t, const float*, float*), size_t batch,
    const float* from, float* to)
{
  enum { BLOCK = 32 * VECTOR_LANES };
  size_t count = batch / sizeof(float);
  for (; count >= BLOCK; count -= BLOCK, from += BLOCK, to += BLOCK) {
    vfloat others = VINT(setzero_ps);
    _Pragma("GCC unroll 4") for (size_t i = 0; i < BLOCK; i += VECTOR_LANES) {
      others = VINT(or_ps, others, outside(VINT(loadu_ps, from + i)));
    }
    if (!has_sign(others)) {
      apply(ordinary, BLOCK * sizeof(float), from, to);
    } else {
      apply_any(BLOCK * sizeof(float), from, to);
    }
  }
  if (count != 0) {
    apply_any(count * sizeof(float), from, to);
  }
}

// A sum with this has the nearest integer in its lowest bits.
#define ROUNDING_TERM 0x1.8p23f

static XNN_INLINE vfloat added_rounding_term(vfloat x) {
  return vfloat_add_product(VINT(set1_ps, ROUNDING_TERM), x, VINT(set1_ps, LOG2_E));
}

static XNN_INLINE vfloat power_of_two(vfloat exponent) {
  const vfloat bits = VINT(mul_ps, VINT(add_ps, exponent, VINT(set1_ps, 127.0f)), VINT(set1_ps, 0x1p23f));
  return vfloat_of_bits(VINT(cvtps_epi32, bits));
}

// Multiplies by 2^n, where neither the result nor the power is denormal or infinite. `sum` is that of `n` and ROUNDING_TERM.
static XNN_INLINE vfloat times_power_of_two(vfloat x, vfloat sum, vfloat n) {
#ifdef WITHOUT_INTEGERS
  return VINT(mul_ps, x, power_of_two(n));
#else
  const vint exponent = VINT(slli_epi32, vint_of_bits(sum), 23);
  return vfloat_of_bits(VINT(add_epi32, vint_of_bits(x), exponent));
#endif
}

// Sign bits are set where an element is beyond +-86 or NaN.
static XNN_INLINE vfloat outside_of_exponents(vfloat x) {
  const vfloat magnitude = VINT(andnot_ps, VINT(set1_ps, -0.0f), x);
  return vfloat_not_less(magnitude, VINT(set1_ps, 86.0f));
}

static XNN_INLINE vfloat ordinary_exponential(vfloat x) {
  const vfloat sum = added_rounding_term(x);
  const vfloat n = VINT(sub_ps, sum, VINT(set1_ps, ROUNDING_TERM));
  return times_power_of_two(small_exponential(without_powers_of_two(x, n)), sum, n);
}

// Multiplies by two powers of two, because 2^n may be no float.
static XNN_INLINE vfloat exponential(vfloat x) {
  x = exponential_argument(x);
  const vfloat n = VINT(sub_ps, added_rounding_term(x), VINT(set1_ps, ROUNDING_TERM));
  const vfloat half = VINT(floor_ps, VINT(mul_ps, n, VINT(set1_ps, 0.5f)));
  const vfloat result = VINT(mul_ps, small_exponential(without_powers_of_two(x, n)), power_of_two(half));
  return VINT(mul_ps, result, power_of_two(VINT(sub_ps, n, half)));
}

#endif

#define UNARY_OF_VECTORS(name, function) \
  F32_UNARY(WITH_ISA(xnnpack_sys_f32_##name##_ukernel__)) { apply(function, batch, input, output); }
#ifdef __AVX512F__
#define UNARY_BY_KIND(name, outside, function) UNARY_OF_VECTORS(name, function)
#else
// The function for any element is not inlined, because its constants would take registers from the other.
#define UNARY_BY_KIND(name, outside, function) \
  static __attribute__((noinline)) void apply_##function(size_t batch, const float* from, float* to) { \
    apply(function, batch, from, to); \
  } \
  F32_UNARY(WITH_ISA(xnnpack_sys_f32_##name##_ukernel__)) { \
    apply_by_kind(outside, ordinary_##function, apply_##function, batch, input, output); \
  }
#endif

UNARY_BY_KIND(vexp, outside_of_exponents, exponential)
