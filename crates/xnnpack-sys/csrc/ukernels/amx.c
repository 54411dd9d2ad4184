// See `amx.h`.

// For `syscall`.
#define _DEFAULT_SOURCE

#include "ukernels/amx.h"

#include <cpuinfo.h>

__thread struct amx_turn xnnpack_sys_amx_turn;

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include "xnnpack/init-once.h"

// Operation of arch_prctl: requests registers that the system saves only for processes that requested them (asm/prctl.h).
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

XNN_INIT_ONCE_GUARD(amx);

static bool has_amx;

static void init_amx_config(void) {
  has_amx = cpuinfo_initialize() && cpuinfo_has_x86_amx_int8() &&
      syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

bool xnnpack_sys_has_amx(void) {
  XNN_INIT_ONCE(amx);
  return has_amx;
}
#else
bool xnnpack_sys_has_amx(void) { return false; }
#endif
