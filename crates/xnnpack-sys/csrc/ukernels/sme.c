// See `sme.h`.

#include "ukernels/sme.h"

#include "xnnpack/common.h"

#if XNN_ARCH_ARM64 && XNN_ENABLE_OWN_SME
#include "xnnpack/hardware-config.h"
#include "xnnpack/init-once.h"

XNN_INIT_ONCE_GUARD(sme);

static size_t bytes;

static void init_sme_config(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  if (hardware != NULL && hardware->use_arm_sme) {
    size_t length;
    __asm__ volatile(".arch_extension sme\nrdsvl %0, #1\n" : "=r"(length));
    bytes = length <= SME_MAX_BYTES ? length : 0;
  }
}

size_t xnnpack_sys_sme_bytes(void) {
  XNN_INIT_ONCE(sme);
  return bytes;
}
#else
size_t xnnpack_sys_sme_bytes(void) { return 0; }
#endif
