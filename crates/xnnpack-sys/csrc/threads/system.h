// Functions of the operating system that the pool calls: threads, a lock, waiting until a word in memory changes, and a clock.

#ifndef XNNPACK_SYS_SYSTEM_H
#define XNNPACK_SYS_SYSTEM_H

#ifdef _WIN32
#include "system_windows.h"
#else
#include "system_posix.h"
#endif

// Signals to the processor that this thread spins.
static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#elif defined(__arm__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
