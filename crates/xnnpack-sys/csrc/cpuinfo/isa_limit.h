// The newest instruction set that may be used, from the environment: `XNN_MAX_ISA`.

#ifndef XNNPACK_SYS_ISA_LIMIT_H
#define XNNPACK_SYS_ISA_LIMIT_H

#include <stddef.h>

// Levels from the oldest processors on. Each is a kind of processor that exists: AVX512 is without AVX-VNNI, as on Skylake-X.
enum isa_level {
#if defined(__x86_64__)
  ISA_SSE41,
  ISA_AVX,
  ISA_AVX2,
  ISA_AVXVNNI,
  ISA_AVX512,
  // AVX512-VNNI alone.
  ISA_CASCADELAKE,
  // AVX512-VNNI with VBMI and GFNI.
  ISA_AVX512VNNI,
  ISA_AMX,
#elif defined(__aarch64__) || defined(__arm__)
  ISA_NEON,
  ISA_DOTPROD,
  ISA_I8MM,
#if defined(__aarch64__)
  ISA_SME,
#endif
#endif
  ISA_UNLIMITED,
  // The variable has another value. There is no limit, and `xnnpack::initialize` fails.
  ISA_INVALID,
};

// Reads the environment when it is first called.
enum isa_level xnnpack_sys_isa_limit(void);

// Returns the name of a level, and NULL behind the last one.
const char* xnnpack_sys_isa_level_name(size_t level);

#endif
