// Shared by the files that choose microkernels (`operators.h`): instruction sets, and copies of XNNPACK's configurations with
// microkernels of this crate.

#ifndef XNNPACK_SYS_CHOICES_H
#define XNNPACK_SYS_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "config/operators.h"
#include "ukernels/depthwise.h"
#include "xnnpack/common.h"
#include "xnnpack/config.h"
#include "xnnpack/hardware-config.h"
#include "xnnpack/init-once.h"

#define AVX512F (XNN_ARCH_X86_64 && XNN_ENABLE_AVX512F)
#define AVX512VNNI (AVX512F && XNN_ENABLE_AVX512VNNI && XNN_ENABLE_AVX512VBMI)
#define AVX512VNNIGFNI (AVX512VNNI && XNN_ENABLE_AVX512VNNIGFNI)
#define AMX (AVX512VNNI && XNN_ENABLE_OWN_AMX)

// Defines a function that returns a copy of XNNPACK's `original` configuration, to which `change` was made, if this processor is
// `usable`, and the original otherwise.
#define CHOICE(name, type, count, original, usable, change) \
  static struct type name##_configs[count]; \
  XNN_INIT_ONCE_GUARD(name); \
  static void init_##name##_config(void) { \
    memcpy(name##_configs, original(), sizeof(name##_configs)); \
    change; \
  } \
  const struct type* xnnpack_sys_##name##_config(void) { \
    if (!(usable) || original() == NULL) { \
      return original(); \
    } \
    XNN_INIT_ONCE(name); \
    return name##_configs; \
  }

#define NO_CHOICE(name, type, original) \
  const struct type* xnnpack_sys_##name##_config(void) { return original(); }

#if AVX512F
static XNN_INLINE bool has_avx512f(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512f;
}

// Replaces the microkernels for 9 and for 25 weights.
static XNN_INLINE void choose_depthwise(
    struct xnn_dwconv_config* configs, size_t count, xnn_dwconv_unipass_ukernel_fn of_9,
    xnn_dwconv_unipass_ukernel_fn of_25)
{
  for (size_t i = 0; i < count; i++) {
    struct xnn_dwconv_config* config = &configs[i];
    if (config->last_tile != 0 || (config->primary_tile != 9 && config->primary_tile != 25)) {
      continue;
    }
    config->minmax.unipass = config->primary_tile == 9 ? of_9 : of_25;
    config->linear.unipass = NULL;
    config->channel_tile = DEPTHWISE_LANES;
    config->channel_subtile = DEPTHWISE_LANES;
    config->channel_round = 1;
  }
}

#define DEPTHWISE(type, count) \
  choose_depthwise( \
      type##_depthwise_configs, count, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_##type##_depthwise_9p16c, \
      (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_##type##_depthwise_25p16c)
#endif

#if AVX512VNNI
static XNN_INLINE bool has_avx512vnni(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512vnni && hardware->use_x86_avx512vbmi;
}
#endif

#endif
