// Replaces cpuinfo's header of this name: answers of CPUID come from glibc if it has them, see `../processor_x86.c`.

#ifndef XNNPACK_SYS_CPUID_H
#define XNNPACK_SYS_CPUID_H

#include <stdint.h>

#include <x86/api.h>

struct cpuid_regs cpuidex(uint32_t leaf, uint32_t subleaf);

static inline struct cpuid_regs cpuid(uint32_t leaf) { return cpuidex(leaf, 0); }

// The groups of registers that the system saves, one bit for each.
static inline uint64_t xgetbv(uint32_t at) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(at));
  return (uint64_t) high << 32 | low;
}

#endif
