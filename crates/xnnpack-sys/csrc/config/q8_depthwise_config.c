// Microkernels for depthwise convolutions of 8-bit integers, see `operators.h`.

#include "config/config.h"

#include <assert.h>

#include "config/operators.h"
#include "config/q8_bytes_config.h"
#include "ukernels/depthwise.h"
#include "ukernels/q8_neon.h"
#include "ukernels/qu8_wasmsimd.h"
#include "xnnpack/microfnptr.h"

#if XNN_ARCH_X86_64

// For kernels of three weights XNNPACK has a microkernel for AVX that adds two products in 16 bits, which overflows for two weights of
// -128. Replaces it by that for nine.
static void replace_three(struct xnn_dwconv_config* configs, size_t count) {
  for (size_t i = 0; i + 1 < count; i++) {
    if (configs[i].primary_tile == 3) {
      configs[i] = configs[i + 1];
    }
  }
}

#define BASE_DEPTHWISE(type, count) \
  choose_depthwise( \
      type##_base_depthwise_configs, count, DEPTHWISE_LANES, \
      (xnn_dwconv_unipass_ukernel_fn) X86_UKERNEL(xnnpack_sys_##type##_dwconv_minmax_ukernel_9p16c), \
      (xnn_dwconv_unipass_ukernel_fn) X86_UKERNEL(xnnpack_sys_##type##_dwconv_minmax_ukernel_25p16c)); \
  if (!has_avx2()) { \
    replace_three(type##_base_depthwise_configs, count); \
  }

#define CHOOSE_QS8_DEPTHWISE BASE_DEPTHWISE(qs8, XNN_MAX_QC8_DWCONV_UKERNELS)

#elif XNN_ARCH_ARM64

#define BASE_DEPTHWISE(type, count) DEPTHWISE_OF(type##_base_depthwise_configs, type, 16, neon, count)

#define QS8_DEPTHWISE_WITH(taps, isa) \
  (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_qs8_dwconv_minmax_ukernel_##taps##p16c__##isa

static void choose_qs8_depthwise(struct xnn_dwconv_config* configs) {
  choose_depthwise(
      configs, XNN_MAX_QC8_DWCONV_UKERNELS, DEPTHWISE_LANES, ARM64_DEPTHWISE(QS8_DEPTHWISE_WITH, 9),
      ARM64_DEPTHWISE(QS8_DEPTHWISE_WITH, 25));
#if XNN_ENABLE_ARM_DOTPROD
  // XNNPACK's for three weights adds products in 16 bits, see `q8_exact_config.c`.
  if (has_dot_products()) {
    assert(configs[0].primary_tile == 3);
    configs[0].minmax.unipass = QS8_DEPTHWISE_WITH(3, neondot);
  }
#endif
}

#define CHOOSE_QS8_DEPTHWISE choose_qs8_depthwise(qs8_base_depthwise_configs)

#elif XNN_ARCH_WASMSIMD

#define BASE_DEPTHWISE(type, count) DEPTHWISE_OF(type##_base_depthwise_configs, type, 8, wasmsimd, count)

#endif

#ifdef CHOOSE_QS8_DEPTHWISE
CHOICE(
    qs8_base_depthwise, xnn_dwconv_config, XNN_MAX_QC8_DWCONV_UKERNELS, xnn_init_qs8_qc8w_dwconv_config, has_q8_microkernels(),
    CHOOSE_QS8_DEPTHWISE)
#else
NO_CHOICE(qs8_base_depthwise, xnn_dwconv_config, xnn_init_qs8_qc8w_dwconv_config)
#endif

#if FIXED_POINT_QU8

// All microkernels are replaced, and so are the functions that initialize their parameters.
static void init_qu8_depthwise(struct xnn_dwconv_config* configs) {
  for (size_t i = 0; i < XNN_MAX_QU8_DWCONV_UKERNELS; i++) {
    configs[i].init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  }
}

CHOICE(
    qu8_base_depthwise, xnn_dwconv_config, XNN_MAX_QU8_DWCONV_UKERNELS, xnn_init_qu8_dwconv_config, has_q8_microkernels(),
    BASE_DEPTHWISE(qu8, XNN_MAX_QU8_DWCONV_UKERNELS);
    init_qu8_depthwise(qu8_base_depthwise_configs))

#else

NO_CHOICE(qu8_base_depthwise, xnn_dwconv_config, xnn_init_qu8_dwconv_config)

#endif

#if AVX512VNNI

CHOICE(
    qs8_depthwise, xnn_dwconv_config, XNN_MAX_QC8_DWCONV_UKERNELS, xnnpack_sys_qs8_base_depthwise_config, has_avx512vnni(),
    DEPTHWISE(qs8, avx512vnni, XNN_MAX_QC8_DWCONV_UKERNELS))
CHOICE(
    qu8_depthwise, xnn_dwconv_config, XNN_MAX_QU8_DWCONV_UKERNELS, xnnpack_sys_qu8_base_depthwise_config, has_avx512vnni(),
    DEPTHWISE(qu8, avx512vnni, XNN_MAX_QU8_DWCONV_UKERNELS))

#else

NO_CHOICE(qs8_depthwise, xnn_dwconv_config, xnnpack_sys_qs8_base_depthwise_config)
NO_CHOICE(qu8_depthwise, xnn_dwconv_config, xnnpack_sys_qu8_base_depthwise_config)

#endif
