// GELU with tanh, in its form as a product with a logistic function: included by a file for each instruction set, behind
// `unary_f32_x86.h`. The file for AVX512F has defined `logistic`.

#include "ukernels/gelu_f32.h"

#include <assert.h>

#ifdef __AVX512F__
static XNN_INLINE vfloat gate(vfloat x) { return logistic(x); }
#else
// The logistic function, and 0 for less than -86. It need not be NaN where `x` is.
static XNN_INLINE vfloat gate(vfloat x) {
  const vfloat most = VINT(set1_ps, 86.0f);
  const vfloat negative = VINT(xor_ps, x, VINT(set1_ps, -0.0f));
  const vfloat argument = VINT(max_ps, VINT(min_ps, negative, most), VINT(xor_ps, most, VINT(set1_ps, -0.0f)));
  const vfloat power = ordinary_exponential(argument);
  const vfloat one = VINT(set1_ps, 1.0f);
  return VINT(and_ps, VINT(div_ps, one, VINT(add_ps, power, one)), vfloat_not_less(most, negative));
}
#endif

// Both factors are positive, so that the gate is not NaN unless `x` is.
static XNN_INLINE vfloat gelu(vfloat x, vfloat linear, vfloat cubic) {
  const vfloat factor = vfloat_add_product(linear, cubic, VINT(mul_ps, x, x));
  return VINT(mul_ps, x, gate(VINT(mul_ps, x, factor)));
}

F32_UNARY(WITH_ISA(xnnpack_sys_f32_vgelu_ukernel__)) {
  assert(batch != 0 && batch % sizeof(float) == 0);
  const struct xnnpack_sys_gelu* factors = params;
  const vfloat linear = VINT(set1_ps, factors->linear);
  const vfloat cubic = VINT(set1_ps, factors->cubic);
  const float* from = input;
  float* to = output;
  size_t count = batch / sizeof(float);
  for (; count >= VECTOR_LANES; count -= VECTOR_LANES, from += VECTOR_LANES, to += VECTOR_LANES) {
    vfloat_store(to, gelu(vfloat_load(from, VECTOR_LANES), linear, cubic), VECTOR_LANES);
  }
  if (count != 0) {
    vfloat_store(to, gelu(vfloat_load(from, count), linear, cubic), count);
  }
}
