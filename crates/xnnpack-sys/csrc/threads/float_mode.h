// Floating-point mode of a thread: XNNPACK computes without denormals.

#ifndef XNNPACK_SYS_FLOAT_MODE_H
#define XNNPACK_SYS_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE__)
#include <xmmintrin.h>

typedef unsigned int float_mode;

static inline float_mode disable_denormals(void) {
  const float_mode before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  return before;
}

static inline void restore_floats(float_mode before) { _mm_setcsr(before); }
#elif defined(__aarch64__)
typedef uint64_t float_mode;

static inline float_mode disable_denormals(void) {
  float_mode before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" ::"r"(before | UINT64_C(1) << 24));
  return before;
}

static inline void restore_floats(float_mode before) { __asm__ volatile("msr fpcr, %0" ::"r"(before)); }
#else
typedef int float_mode;

static inline float_mode disable_denormals(void) { return 0; }

static inline void restore_floats(float_mode before) { (void) before; }
#endif

#endif
