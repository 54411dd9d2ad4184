// Maxima and minima of 8-bit integers with one scale and zero point. Integers are then ordered like the numbers that they represent.
// XNNPACK has no microkernels for them: it would convert each element to floats, one by one.

#include "ukernels/choice_q8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "xnnpack/common.h"

// Compilers make a vector of a block.
enum { BLOCK = 16 };

#define CHOOSE(name, element, compare) \
  static XNN_INLINE void name##_of( \
      size_t batch, const element* a, const element* b, bool b_is_one, element* output) \
  { \
    element copies[BLOCK]; \
    memset(copies, *b, BLOCK); \
    for (; batch >= BLOCK; batch -= BLOCK) { \
      element first[BLOCK]; \
      element second[BLOCK]; \
      memcpy(first, a, BLOCK); \
      memcpy(second, b_is_one ? copies : b, BLOCK); \
      for (size_t i = 0; i < BLOCK; i++) { \
        first[i] = first[i] compare second[i] ? first[i] : second[i]; \
      } \
      memcpy(output, first, BLOCK); \
      a += BLOCK; \
      b += b_is_one ? 0 : BLOCK; \
      output += BLOCK; \
    } \
    for (size_t i = 0; i < batch; i++) { \
      const element second = b_is_one ? *b : b[i]; \
      output[i] = a[i] compare second ? a[i] : second; \
    } \
  } \
  void xnnpack_sys_##name##_ukernel__vector( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    name##_of(batch, a, b, /*b_is_one=*/false, output); \
  } \
  void xnnpack_sys_##name##c_ukernel__vector( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    name##_of(batch, a, b, /*b_is_one=*/true, output); \
  }

CHOOSE(s8_vmax, int8_t, >)
CHOOSE(s8_vmin, int8_t, <)
CHOOSE(u8_vmax, uint8_t, >)
CHOOSE(u8_vmin, uint8_t, <)
