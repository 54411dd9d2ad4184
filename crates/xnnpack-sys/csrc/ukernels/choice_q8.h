// Maxima and minima of 8-bit integers, see `choice_q8.c`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_CHOICE_Q8_H
#define XNNPACK_SYS_CHOICE_Q8_H

#include <stddef.h>

// Choices between two vectors, and between a vector and one element.
#define CHOICE_Q8(name) \
  void xnnpack_sys_##name##_ukernel__vector(size_t batch, const void* a, const void* b, void* output, const void* params); \
  void xnnpack_sys_##name##c_ukernel__vector(size_t batch, const void* a, const void* b, void* output, const void* params)

CHOICE_Q8(s8_vmax);
CHOICE_Q8(s8_vmin);
CHOICE_Q8(u8_vmax);
CHOICE_Q8(u8_vmin);

#endif
