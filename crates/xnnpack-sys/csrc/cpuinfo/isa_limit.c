// See `isa_limit.h`.

#include "cpuinfo/isa_limit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char* const names[] = {
#if defined(__x86_64__)
    [ISA_SSE41] = "sse41",
    [ISA_AVX] = "avx",
    [ISA_AVX2] = "avx2",
    [ISA_AVXVNNI] = "avxvnni",
    [ISA_AVX512] = "avx512",
    [ISA_CASCADELAKE] = "cascadelake",
    [ISA_AVX512VNNI] = "avx512vnni",
    [ISA_AMX] = "amx",
#elif defined(__aarch64__) || defined(__arm__)
    [ISA_NEON] = "neon",
    [ISA_DOTPROD] = "dotprod",
    [ISA_I8MM] = "i8mm",
#if defined(__aarch64__)
    [ISA_SME] = "sme",
#endif
#endif
    [ISA_UNLIMITED] = NULL,
};

static enum isa_level read_limit(void) {
  const char* value = getenv("XNN_MAX_ISA");
  if (value == NULL || *value == '\0') {
    return ISA_UNLIMITED;
  }
  for (size_t level = 0; level < ISA_UNLIMITED; level++) {
    if (strcmp(value, names[level]) == 0) {
      return (enum isa_level) level;
    }
  }
  return ISA_INVALID;
}

enum isa_level xnnpack_sys_isa_limit(void) {
  // The limit plus one, or 0 before the first call. The first of several threads that read the environment decides.
  static _Atomic int known;
  int level = atomic_load(&known);
  if (level == 0) {
    int unknown = 0;
    level = (int) read_limit() + 1;
    if (!atomic_compare_exchange_strong(&known, &unknown, level)) {
      level = unknown;
    }
  }
  return (enum isa_level) (level - 1);
}

const char* xnnpack_sys_isa_level_name(size_t level) { return level < ISA_UNLIMITED ? names[level] : NULL; }
