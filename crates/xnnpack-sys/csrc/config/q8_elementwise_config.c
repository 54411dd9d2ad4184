// Microkernels for sums, means, products, conversions and tables of 8-bit integers, see `operators.h`.

#include "config/config.h"

#include "config/operators.h"
#include "ukernels/arithmetic_q8.h"
#include "ukernels/elementwise_qu8.h"
#include "ukernels/q8_neon.h"
#include "ukernels/qu8_wasmsimd.h"
#include "ukernels/sum_columns_x8.h"
#include "ukernels/sum_qs8.h"
#include "xnnpack/lut.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams-init.h"
#include "xnnpack/vbinary.h"

#if FIXED_POINT_QU8

#if XNN_ARCH_X86_64
#define QU8_ELEMENTWISE_OF(name) X86_UKERNEL(xnnpack_sys_qu8_##name##_ukernel)
#elif XNN_ARCH_ARM64
#define QU8_ELEMENTWISE_OF(name) xnnpack_sys_qu8_##name##_ukernel__neon
#else
#define QU8_ELEMENTWISE_OF(name) xnnpack_sys_qu8_##name##_ukernel__wasmsimd
#endif

#define CHOOSE_QU8_ADD \
  qu8_add_configs[0].op_ukernel = QU8_ELEMENTWISE_OF(vadd); \
  qu8_add_configs[0].opc_ukernel = QU8_ELEMENTWISE_OF(vaddc); \
  qu8_add_configs[0].ropc_ukernel = QU8_ELEMENTWISE_OF(vaddc); \
  qu8_add_configs[0].init = xnnpack_sys_init_qu8_add_params

#define CHOOSE_QU8_CONVERT \
  qu8_convert_configs[0].ukernel = (xnn_vunary_ukernel_fn) QU8_ELEMENTWISE_OF(vcvt); \
  qu8_convert_configs[0].init = xnnpack_sys_init_qu8_convert_params

CHOICE(qu8_add, xnn_binary_elementwise_config, 1, xnn_init_qu8_vadd_config, has_q8_microkernels(), CHOOSE_QU8_ADD)
CHOICE(qu8_convert, xnn_unary_elementwise_config, 1, xnn_init_qu8_cvt_config, has_q8_microkernels(), CHOOSE_QU8_CONVERT)

#else

NO_CHOICE(qu8_add, xnn_binary_elementwise_config, xnn_init_qu8_vadd_config)
NO_CHOICE(qu8_convert, xnn_unary_elementwise_config, xnn_init_qu8_cvt_config)

#endif

const struct xnn_unary_elementwise_config* xnnpack_sys_qu8_direct_convert_config(void) {
  // On x86-64 a table of 256 bytes takes a thirteenth to two thirds of the time.
  return XNN_ARCH_X86_64 ? NULL : xnnpack_sys_qu8_convert_config();
}

#if XNN_ARCH_X86_64

// Whether AVX512-VBMI looks up 64 bytes by four instructions.
static bool has_fast_tables(void) {
#if XNN_ENABLE_AVX512VBMI
  return xnn_init_hardware_config()->use_x86_avx512vbmi;
#else
  return false;
#endif
}

const struct xnn_x8_lut_config* xnnpack_sys_table_config(uint8_t* table) {
  static const struct xnn_x8_lut_config linear_sse41 = {.microkernel = xnnpack_sys_x8_linear_ukernel__sse41};
  static const struct xnn_x8_lut_config linear_avx2 = {.microkernel = xnnpack_sys_x8_linear_ukernel__avx2};
  if (has_sse41() && !has_fast_tables() && xnnpack_sys_find_linear_form(table)) {
    return has_avx2() ? &linear_avx2 : &linear_sse41;
  }
  // Loads of single bytes take four fifths of the time of shuffles of 128 bits.
  static const struct xnn_x8_lut_config single_bytes = {.microkernel = xnn_x8_lut_ukernel__scalar_u4};
  const bool has_short_shuffles = has_avx() && !xnn_init_hardware_config()->use_x86_avx2;
  return has_short_shuffles ? &single_bytes : xnn_init_x8_lut_config();
}

#else

const struct xnn_x8_lut_config* xnnpack_sys_table_config(uint8_t* table) { return xnn_init_x8_lut_config(); }

#endif

#if XNN_ARCH_ARM || XNN_ARCH_ARM64

// For ARM, XNNPACK chooses microkernels that scale products in fixed point and round ties up. For other processors they scale in floats
// and round ties to even, so that results next to a tie differ. XNNPACK has such microkernels for ARM, too, which take no more
// instructions.
#if XNN_ARCH_ARM64
#define SCALED_IN_FLOATS(type, name) (xnn_vbinary_ukernel_fn) xnn_##type##_##name##_minmax_fp32_ukernel__neonv8_ld64_u16
#define HAS_NEON true
#else
#define SCALED_IN_FLOATS(type, name) (xnn_vbinary_ukernel_fn) xnn_##type##_##name##_minmax_fp32_ukernel__neon_ld64_u16
#define HAS_NEON xnn_init_hardware_config()->use_arm_neon
#endif

#define CHOOSE_MULTIPLY(type) \
  type##_multiply_configs[0].op_ukernel = SCALED_IN_FLOATS(type, vmul); \
  type##_multiply_configs[0].opc_ukernel = SCALED_IN_FLOATS(type, vmulc); \
  type##_multiply_configs[0].ropc_ukernel = SCALED_IN_FLOATS(type, vmulc); \
  type##_multiply_configs[0].init = (xnn_init_binary_params_fn) xnn_init_##type##_mul_minmax_scalar_params

CHOICE(qs8_multiply, xnn_binary_elementwise_config, 1, xnn_init_qs8_vmul_config, HAS_NEON, CHOOSE_MULTIPLY(qs8))
CHOICE(qu8_multiply, xnn_binary_elementwise_config, 1, xnn_init_qu8_vmul_config, HAS_NEON, CHOOSE_MULTIPLY(qu8))

NO_CHOICE(qs8_add, xnn_binary_elementwise_config, xnn_init_qs8_vadd_config)

#elif XNN_ARCH_X86_64

#define CHOOSE_BINARY(config, choice, type, name) \
  (config)->op_ukernel = choice(xnnpack_sys_##type##_##name##_ukernel); \
  (config)->opc_ukernel = choice(xnnpack_sys_##type##_##name##c_ukernel); \
  (config)->ropc_ukernel = (config)->opc_ukernel

CHOICE(
    qs8_add, xnn_binary_elementwise_config, 1, xnn_init_qs8_vadd_config, has_sse41(),
    CHOOSE_BINARY(qs8_add_configs, X86_UKERNEL, qs8, vadd))
CHOICE(
    qs8_multiply, xnn_binary_elementwise_config, 1, xnn_init_qs8_vmul_config, has_avx2(),
    CHOOSE_BINARY(qs8_multiply_configs, WIDE_UKERNEL, qs8, vmul))
CHOICE(
    qu8_multiply, xnn_binary_elementwise_config, 1, xnn_init_qu8_vmul_config, has_avx2(),
    CHOOSE_BINARY(qu8_multiply_configs, WIDE_UKERNEL, qu8, vmul))

#else

NO_CHOICE(qs8_add, xnn_binary_elementwise_config, xnn_init_qs8_vadd_config)
NO_CHOICE(qs8_multiply, xnn_binary_elementwise_config, xnn_init_qs8_vmul_config)
NO_CHOICE(qu8_multiply, xnn_binary_elementwise_config, xnn_init_qu8_vmul_config)

#endif

#if XNN_ARCH_X86_64
#define SUM_COLUMNS(type) \
  CHOICE( \
      type##_sum_columns, xnn_reduce_config, 1, xnn_init_##type##_rdsum_config, has_sse41(), \
      type##_sum_columns_configs[0].rd_ukernel = WITH_AVX512SKX( \
          xnnpack_sys_##type##_rdsum_ukernel__avx512skx, BASE_UKERNEL(xnnpack_sys_##type##_rdsum_ukernel)))

SUM_COLUMNS(qs8)
SUM_COLUMNS(qu8)
CHOICE(
    qs8_sum, xnn_reduce_config, 1, xnn_init_qs8_rsum_config, has_sse41() && !has_avx512skx(),
    qs8_sum_configs[0].ukernel = BASE_UKERNEL(xnnpack_sys_qs8_rsum_ukernel))
#else
NO_CHOICE(qs8_sum_columns, xnn_reduce_config, xnn_init_qs8_rdsum_config)
NO_CHOICE(qu8_sum_columns, xnn_reduce_config, xnn_init_qu8_rdsum_config)
NO_CHOICE(qs8_sum, xnn_reduce_config, xnn_init_qs8_rsum_config)
#endif
