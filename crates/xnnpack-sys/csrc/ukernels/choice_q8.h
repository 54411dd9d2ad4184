// Maxima and minima of 8-bit integers, see `choice_q8.c` and `choice_q8_x86.h`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_CHOICE_Q8_H
#define XNNPACK_SYS_CHOICE_Q8_H

#include <stddef.h>

// Choices between two vectors, and between a vector and one element.
#define CHOICE_Q8(name, isa) \
  void xnnpack_sys_##name##_ukernel__##isa(size_t batch, const void* a, const void* b, void* output, const void* params); \
  void xnnpack_sys_##name##c_ukernel__##isa(size_t batch, const void* a, const void* b, void* output, const void* params)

#define CHOICES_Q8(isa) \
  CHOICE_Q8(s8_vmax, isa); \
  CHOICE_Q8(s8_vmin, isa); \
  CHOICE_Q8(u8_vmax, isa); \
  CHOICE_Q8(u8_vmin, isa)

CHOICES_Q8(sse41);
CHOICES_Q8(avx2);
// Every processor.
CHOICES_Q8(vector);

#endif
