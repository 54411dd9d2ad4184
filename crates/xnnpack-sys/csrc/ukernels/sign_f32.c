// Signs of floats: -1 or 1, or the element itself if it is 0 or NaN. XNNPACK has a reference kernel alone, which branches for each element.

#include "ukernels/sign_f32.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "xnnpack/common.h"

// Four floats, and their bits or -1 for each for which a condition holds, in the notation of the compilers.
typedef float floats __attribute__((vector_size(16)));
typedef int32_t conditions __attribute__((vector_size(16)));

static XNN_INLINE floats signs(floats x) {
  const conditions bits = (conditions) x;
  const floats zero = {0};
  // NaN is not larger.
  const conditions have_sign = (floats) (bits & INT32_MAX) > zero;
  const conditions ones = (bits & INT32_MIN) | (conditions) (zero + 1.0f);
  return (floats) (bits ^ ((bits ^ ones) & have_sign));
}

void xnnpack_sys_f32_vsign_ukernel__vector(size_t batch, const void* input, void* output, const void* params) {
  assert(batch != 0 && batch % sizeof(float) == 0);
  const char* from = input;
  char* to = output;
  floats x = {0};
  for (; batch >= sizeof(x); batch -= sizeof(x), from += sizeof(x), to += sizeof(x)) {
    memcpy(&x, from, sizeof(x));
    x = signs(x);
    memcpy(to, &x, sizeof(x));
  }
  memcpy(&x, from, batch);
  x = signs(x);
  memcpy(to, &x, batch);
}
