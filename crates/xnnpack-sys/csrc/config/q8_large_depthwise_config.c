// Microkernels for depthwise convolutions of 8-bit integers with more than 25 weights, of which XNNPACK has none, see `operators.h`.

#include "config/config.h"

#include "config/operators.h"
#include "ukernels/depthwise.h"

#if XNN_ARCH_X86_64
#define LARGE(type, taps) X86_UKERNEL(xnnpack_sys_##type##_dwconv_minmax_ukernel_##taps##p16c)
#elif XNN_ARCH_ARM64
#define LARGE(type, taps) xnnpack_sys_##type##_dwconv_minmax_ukernel_##taps##p16c__neon
#endif

#ifdef LARGE

enum { FEW = 25, LARGE_CONFIGS = 5 };

// The most configurations that XNNPACK looks at, whichever it gets first. Those behind the last one are zeros, which it does not choose.
#define MOST_CONFIGS XNN_MAX_QC8_DWCONV_UKERNELS
_Static_assert(XNN_MAX_QU8_DWCONV_UKERNELS <= MOST_CONFIGS, "configurations of uint8 are fewer");

// Adds the configuration for `weights`, which is that for 25 but for its microkernel.
static void add_large(
    const struct xnn_dwconv_config* few, struct xnn_dwconv_config* to, uint8_t weights, xnn_dwconv_unipass_ukernel_fn microkernel)
{
  while (few->primary_tile != FEW) {
    few++;
  }
  *to = *few;
  to->primary_tile = weights;
  to->minmax.unipass = microkernel;
}

#define ADD(type, i, weights) \
  add_large( \
      xnnpack_sys_##type##_depthwise_config(), &type##_large_configs[i], weights, \
      (xnn_dwconv_unipass_ukernel_fn) (LARGE(type, weights)))

// Defines the function that returns the configurations for a number of weights, in order of their numbers.
#define LARGE_CHOICE(type) \
  static struct xnn_dwconv_config type##_large_configs[LARGE_CONFIGS + MOST_CONFIGS]; \
  XNN_INIT_ONCE_GUARD(type##_large); \
  static void init_##type##_large_config(void) { \
    ADD(type, 0, 49); \
    ADD(type, 1, 81); \
    ADD(type, 2, 121); \
    ADD(type, 3, 169); \
    ADD(type, 4, 225); \
  } \
  const struct xnn_dwconv_config* xnnpack_sys_##type##_depthwise_config_for(size_t weights) { \
    if (weights <= FEW || !has_q8_microkernels()) { \
      return xnnpack_sys_##type##_depthwise_config(); \
    } \
    XNN_INIT_ONCE(type##_large); \
    size_t i = 0; \
    while (i < LARGE_CONFIGS && type##_large_configs[i].primary_tile < weights) { \
      i++; \
    } \
    return &type##_large_configs[i]; \
  }

LARGE_CHOICE(qs8)
LARGE_CHOICE(qu8)

#else

const struct xnn_dwconv_config* xnnpack_sys_qs8_depthwise_config_for(size_t weights) { return xnnpack_sys_qs8_depthwise_config(); }
const struct xnn_dwconv_config* xnnpack_sys_qu8_depthwise_config_for(size_t weights) { return xnnpack_sys_qu8_depthwise_config(); }

#endif
