// See `isa_limit.h`.

#include "cpuinfo/isa_limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char* const names[] = {
#if defined(__x86_64__)
    [ISA_SSE41] = "sse41",
    [ISA_AVX] = "avx",
    [ISA_AVX2] = "avx2",
    [ISA_AVXVNNI] = "avxvnni",
    [ISA_AVX512] = "avx512",
    [ISA_AVX512VNNI] = "avx512vnni",
    [ISA_AMX] = "amx",
#elif defined(__aarch64__)
    [ISA_NEON] = "neon",
    [ISA_DOTPROD] = "dotprod",
    [ISA_I8MM] = "i8mm",
#endif
    [ISA_UNLIMITED] = NULL,
};

static enum isa_level limit;
static pthread_once_t is_read = PTHREAD_ONCE_INIT;

static void read_limit(void) {
  const char* value = getenv("XNN_MAX_ISA");
  limit = ISA_UNLIMITED;
  if (value == NULL || *value == '\0') {
    return;
  }
  for (size_t level = 0; level < ISA_UNLIMITED; level++) {
    if (strcmp(value, names[level]) == 0) {
      limit = (enum isa_level) level;
      return;
    }
  }
  limit = ISA_INVALID;
}

enum isa_level xnnpack_sys_isa_limit(void) {
  pthread_once(&is_read, read_limit);
  return limit;
}

const char* xnnpack_sys_isa_level_name(size_t level) { return level < ISA_UNLIMITED ? names[level] : NULL; }
