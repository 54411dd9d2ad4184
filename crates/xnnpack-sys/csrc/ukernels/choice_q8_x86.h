// Maxima and minima of 8-bit integers, see `choice_q8.c`: included by a file for each instruction set, which defines `ISA`. Without SSE4.1
// there are no instructions for those of int8.

#include "ukernels/choice_q8.h"

#include <string.h>

#include "ukernels/larger_x86.h"
#include "ukernels/with_isa.h"

// `kind`, `largest` and `b_is_one` are constants wherever these functions are inlined.
static XNN_INLINE vint choice(enum kind kind, bool largest, vint a, vint b) {
  return largest ? larger(kind, a, b) : smaller(kind, a, b);
}

static XNN_INLINE vint load_some(const uint8_t* from, size_t count) {
  uint8_t some[VECTOR] = {0};
  memcpy(some, from, count);
  return vint_load(some);
}

static XNN_INLINE void choose(
    enum kind kind, bool largest, size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output)
{
  const vint one = VINT(set1_epi8, (int8_t) *b);
  for (; batch >= VECTOR; batch -= VECTOR) {
    vint_store(output, choice(kind, largest, vint_load(a), b_is_one ? one : vint_load(b)));
    a += VECTOR;
    b += b_is_one ? 0 : VECTOR;
    output += VECTOR;
  }
  if (batch != 0) {
    uint8_t some[VECTOR];
    vint_store(some, choice(kind, largest, load_some(a, batch), b_is_one ? one : load_some(b, batch)));
    memcpy(output, some, batch);
  }
}

#define CHOOSE(name, kind, largest) \
  void WITH_ISA(xnnpack_sys_##name##_ukernel__)( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    choose(kind, largest, batch, a, b, /*b_is_one=*/false, output); \
  } \
  void WITH_ISA(xnnpack_sys_##name##c_ukernel__)( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    choose(kind, largest, batch, a, b, /*b_is_one=*/true, output); \
  }

CHOOSE(s8_vmax, SIGNED, true)
CHOOSE(s8_vmin, SIGNED, false)
CHOOSE(u8_vmax, UNSIGNED, true)
CHOOSE(u8_vmin, UNSIGNED, false)
