// Detection of x86-64 processors: the instruction sets, the kind of core and the size of the second-level cache, which is
// all that XNNPACK requests from cpuinfo.
//
// In a virtual machine the host answers each CPUID, in 13 us where this was measured. cpuinfo executes 22 of them and reads six
// files, for caches, topology and names that are not needed here: a quarter of the time to load a small packed model. This file
// replaces its `src/x86/linux/init.c` and `src/x86/init.c`; cpuinfo still decodes the answers. glibc has most of them since the
// process began, and one CPUID is left.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cpuinfo.h>
#include <cpuinfo/internal-api.h>
#include <x86/api.h>
#include <x86/cpuid.h>

#include "cpuinfo/isa_limit.h"
#include "ukernels/amx.h"

#define EXTENDED UINT32_C(0x80000000)

struct cpuinfo_x86_isa cpuinfo_isa;

static struct cpuid_regs asked(uint32_t leaf, uint32_t subleaf) {
  struct cpuid_regs regs;
  __asm__("cpuid" : "=a"(regs.eax), "=b"(regs.ebx), "=c"(regs.ecx), "=d"(regs.edx) : "a"(leaf), "c"(subleaf));
  return regs;
}

#ifdef __GLIBC__
// From glibc's `sys/platform/x86.h`: answers of CPUID, and the features that can be used.
struct known_leaf {
  uint32_t answer[4];
  uint32_t active[4];
};

// glibc's `CPUID_INDEX_...`.
enum {
  KNOWN_1 = 0,
  KNOWN_7 = 1,
  KNOWN_80000001 = 2,
  KNOWN_80000008 = 5,
  KNOWN_7_1 = 6,
};

// In glibc from 2.33 on.
extern const struct known_leaf* __x86_get_cpuid_feature_leaf(unsigned int index) __attribute__((weak));

static struct cpuid_regs known(unsigned int index) {
  const uint32_t* answer = __x86_get_cpuid_feature_leaf(index)->answer;
  return (struct cpuid_regs) {.eax = answer[0], .ebx = answer[1], .ecx = answer[2], .edx = answer[3]};
}

struct cpuid_regs cpuidex(uint32_t leaf, uint32_t subleaf) {
  if (__x86_get_cpuid_feature_leaf == NULL) {
    return asked(leaf, subleaf);
  }
  switch (leaf) {
    case 1:
      return known(KNOWN_1);
    case 7:
      return known(subleaf == 0 ? KNOWN_7 : KNOWN_7_1);
    case 0xD: {
      // The registers that the system can save. cpuinfo looks for those that it does save.
      const uint64_t saved = xgetbv(0);
      return (struct cpuid_regs) {.eax = (uint32_t) saved, .edx = (uint32_t) (saved >> 32)};
    }
    case 0x24:
      // The version of AVX10, which XNNPACK does not use.
      return (struct cpuid_regs) {0, 0, 0, 0};
    case EXTENDED:
      // The last extended leaf: every 64-bit processor has those that follow here.
      return (struct cpuid_regs) {.eax = EXTENDED + 8};
    case EXTENDED + 1:
      return known(KNOWN_80000001);
    case EXTENDED + 8:
      return known(KNOWN_80000008);
    default:
      return asked(leaf, subleaf);
  }
}
#else
struct cpuid_regs cpuidex(uint32_t leaf, uint32_t subleaf) { return asked(leaf, subleaf); }
#endif

// Takes features away that the processors of a level do not have.
static void take_away(enum isa_level most, struct cpuinfo_x86_isa* isa) {
  if (most >= ISA_AMX) {
    return;
  }
  isa->amx_tile = isa->amx_int8 = isa->amx_bf16 = isa->amx_fp16 = false;
  if (most >= ISA_AVX512VNNI) {
    return;
  }
  isa->avx512vbmi = isa->avx512vbmi2 = isa->avx512bf16 = isa->avx512fp16 = false;
  isa->avx10_1 = isa->avx10_2 = isa->gfni = isa->avx512bitalg = isa->avx512vpopcntdq = isa->avx512ifma = false;
  if (most != ISA_AVXVNNI) {
    isa->avxvnni = isa->avx_vnni_int8 = isa->avx_vnni_int16 = isa->avx_ne_convert = false;
  }
  if (most >= ISA_CASCADELAKE) {
    return;
  }
  isa->avx512vnni = false;
  if (most >= ISA_AVX512) {
    return;
  }
  isa->avx512f = isa->avx512cd = isa->avx512dq = isa->avx512bw = isa->avx512vl = false;
  if (most >= ISA_AVX2) {
    return;
  }
  isa->avx2 = isa->fma3 = isa->f16c = isa->xop = isa->fma4 = false;
  if (most >= ISA_AVX) {
    return;
  }
  isa->avx = false;
}

static struct cpuinfo_core core;
static struct cpuinfo_cache second_level;

// `last` and `last_extended` are the last leaves of CPUID.
#ifdef _SC_LEVEL2_CACHE_SIZE
// The C library has the size since the process began.
static uint32_t second_level_bytes(enum cpuinfo_vendor vendor, uint32_t last, uint32_t last_extended) {
  (void) vendor;
  (void) last;
  (void) last_extended;
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 && bytes <= INT32_MAX ? (uint32_t) bytes : 0;
}
#else
static uint32_t second_level_bytes(enum cpuinfo_vendor vendor, uint32_t last, uint32_t last_extended) {
  const bool is_amd = vendor == cpuinfo_vendor_amd || vendor == cpuinfo_vendor_hygon;
  const uint32_t leaf = is_amd ? EXTENDED + 0x1D : 4;
  if (leaf > (is_amd ? last_extended : last)) {
    return 0;
  }
  enum { NO_CACHE = 0, INSTRUCTIONS = 2, MAX_CACHES = 8 };
  for (uint32_t index = 0; index < MAX_CACHES; index++) {
    const struct cpuid_regs cache = asked(leaf, index);
    const uint32_t type = cache.eax & 31;
    if (type == NO_CACHE) {
      break;
    }
    if ((cache.eax >> 5 & 7) == 2 && type != INSTRUCTIONS) {
      const uint64_t ways = (cache.ebx >> 22) + 1;
      const uint64_t partitions = (cache.ebx >> 12 & 0x3FF) + 1;
      const uint64_t line = (cache.ebx & 0xFFF) + 1;
      const uint64_t bytes = ways * partitions * line * ((uint64_t) cache.ecx + 1);
      return bytes <= INT32_MAX ? (uint32_t) bytes : 0;
    }
  }
  return 0;
}
#endif

// One core represents all: on x86 XNNPACK reads no other.
static void detect(void) {
  const struct cpuid_regs first = cpuid(0);
  const struct cpuid_regs basic = first.eax >= 1 ? cpuid(1) : (struct cpuid_regs) {0, 0, 0, 0};
  const uint32_t last_extended = cpuid(EXTENDED).eax;
  const struct cpuid_regs extended =
      last_extended > EXTENDED ? cpuid(EXTENDED + 1) : (struct cpuid_regs) {0, 0, 0, 0};
  const enum cpuinfo_vendor vendor = cpuinfo_x86_decode_vendor(first.ebx, first.ecx, first.edx);
  const struct cpuinfo_x86_model_info model = cpuinfo_x86_decode_model_info(basic.eax);
  const enum cpuinfo_uarch uarch = cpuinfo_x86_decode_uarch(vendor, &model);
  cpuinfo_isa = cpuinfo_x86_detect_isa(
      basic, extended, first.eax, last_extended >= EXTENDED ? last_extended : 0, vendor, uarch);
  take_away(xnnpack_sys_isa_limit(), &cpuinfo_isa);

  core = (struct cpuinfo_core) {.processor_count = 1, .vendor = vendor, .uarch = uarch, .cpuid = basic.eax};
  cpuinfo_cores = &core;
  cpuinfo_cores_count = 1;
  cpuinfo_global_uarch =
      (struct cpuinfo_uarch_info) {.uarch = uarch, .cpuid = basic.eax, .processor_count = 1, .core_count = 1};
  second_level = (struct cpuinfo_cache) {
      .size = second_level_bytes(vendor, first.eax, last_extended), .processor_count = 1};
  if (second_level.size != 0) {
    cpuinfo_cache[cpuinfo_cache_level_2] = &second_level;
    cpuinfo_cache_count[cpuinfo_cache_level_2] = 1;
  }

  __sync_synchronize();

  cpuinfo_is_initialized = true;
}

// cpuinfo calls its function for the system once.
#ifdef _WIN32
BOOL CALLBACK cpuinfo_x86_windows_init(PINIT_ONCE init_once, PVOID parameter, PVOID* context) {
  (void) init_once;
  (void) parameter;
  (void) context;
  detect();
  return TRUE;
}
#elif defined(__APPLE__)
void cpuinfo_x86_mach_init(void) { detect(); }
#else
void cpuinfo_x86_linux_init(void) { detect(); }
#endif

// Returns the name of a feature by which XNNPACK chooses microkernels (`hardware-config.c`): empty if the processor does not have
// it, and NULL behind the last feature.
const char* xnnpack_sys_feature(size_t index);

const char* xnnpack_sys_feature(size_t index) {
  if (!cpuinfo_initialize()) {
    return NULL;
  }
  const struct {
    const char* name;
    bool is_there;
  } features[] = {
      {"ssse3", cpuinfo_has_x86_ssse3()},
      {"sse4.1", cpuinfo_has_x86_sse4_1()},
      {"avx", cpuinfo_has_x86_avx()},
      {"f16c", cpuinfo_has_x86_f16c()},
      {"fma", cpuinfo_has_x86_fma3()},
      {"avx2", cpuinfo_has_x86_avx2()},
      {"avxvnni", cpuinfo_has_x86_avxvnni()},
      {"avxvnniint8", cpuinfo_has_x86_avx_vnni_int8()},
      {"avx512f", cpuinfo_has_x86_avx512f()},
      {"avx512cd", cpuinfo_has_x86_avx512cd()},
      {"avx512bw", cpuinfo_has_x86_avx512bw()},
      {"avx512dq", cpuinfo_has_x86_avx512dq()},
      {"avx512vl", cpuinfo_has_x86_avx512vl()},
      {"avx512vbmi", cpuinfo_has_x86_avx512vbmi()},
      {"avx512vnni", cpuinfo_has_x86_avx512vnni()},
      {"avx512fp16", cpuinfo_has_x86_avx512fp16()},
      {"gfni", cpuinfo_has_x86_gfni()},
      {"amx-int8", xnnpack_sys_has_amx()},
  };
  if (index >= sizeof(features) / sizeof(features[0])) {
    return NULL;
  }
  return features[index].is_there ? features[index].name : "";
}
