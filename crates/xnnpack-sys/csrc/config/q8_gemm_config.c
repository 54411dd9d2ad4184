// Microkernels for matrix products and convolutions of 8-bit integers, see `operators.h`.

#include "config/config.h"

#include <stdint.h>

#include "ukernels/amx.h"
#include "config/operators.h"
#include "config/q8_bytes_config.h"
#include "hooks/flags.h"
#include "packing/convolution.h"
#include "ukernels/fixed_point.h"
#include "ukernels/gemm_q8.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/pack.h"

#if FIXED_POINT_QU8

static size_t rescale_qu8(
    struct xnnpack_sys_rescaling rescaling, union xnn_qu8_conv_minmax_params* params, uint8_t kernel_zero_point,
    uint8_t output_zero_point, uint8_t output_min, uint8_t output_max)
{
  const struct fixed_point by = fixed_point(rescaling.scale);
  params->rndnu_scalar.kernel_zero_point = kernel_zero_point;
  params->rndnu_scalar.multiplier = by.multiplier;
  params->rndnu_scalar.shift = (uint32_t) by.exponent;
  params->rndnu_scalar.rounding = rescaling.rounds;
  params->rndnu_scalar.output_min = output_min;
  params->rndnu_scalar.output_max = output_max;
  params->rndnu_scalar.output_zero_point = output_zero_point;
  return sizeof(params->rndnu_scalar);
}

size_t xnnpack_sys_init_fixed_point_qu8_params(
    union xnn_qu8_conv_minmax_params params[1], uint8_t kernel_zero_point, float scale, uint8_t output_zero_point,
    uint8_t output_min, uint8_t output_max)
{
  const struct xnnpack_sys_rescaling rescaling = {.scale = scale, .rounds = 1};
  return rescale_qu8(rescaling, params, kernel_zero_point, output_zero_point, output_min, output_max);
}

#endif

#if AVX512VNNI

static void choose_gemm(
    struct xnn_gemm_config* config, xnn_gemm_ukernel_fn of_1, xnn_gemm_ukernel_fn of_7, xnn_igemm_ukernel_fn indirect_of_1,
    xnn_igemm_ukernel_fn indirect_of_7)
{
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->minmax.gemm[0] = xnn_init_hmp_gemm_ukernel(of_1);
  config->minmax.gemm[Q8_GEMM_ROWS - 1] = xnn_init_hmp_gemm_ukernel(of_7);
  config->minmax.igemm[0] = xnn_init_hmp_igemm_ukernel(indirect_of_1);
  config->minmax.igemm[Q8_GEMM_ROWS - 1] = xnn_init_hmp_igemm_ukernel(indirect_of_7);
  config->mr = Q8_GEMM_ROWS;
  config->nr = Q8_GEMM_CHANNELS;
  config->log2_kr = Q8_GEMM_LOG2_DEPTH;
  config->log2_sr = 0;
}

#define GEMM(type) \
  choose_gemm( \
      type##_gemm_configs, (xnn_gemm_ukernel_fn) xnnpack_sys_##type##_gemm_minmax_ukernel_1x32c4__avx512vnni, \
      (xnn_gemm_ukernel_fn) xnnpack_sys_##type##_gemm_minmax_ukernel_7x32c4__avx512vnni, \
      (xnn_igemm_ukernel_fn) xnnpack_sys_##type##_igemm_minmax_ukernel_1x32c4__avx512vnni, \
      (xnn_igemm_ukernel_fn) xnnpack_sys_##type##_igemm_minmax_ukernel_7x32c4__avx512vnni)

// The offset that is added to int8 weights with a number of inputs, and the inputs' zero point for such weights.
static uint8_t shift_of_qs8(size_t kc) { return xnnpack_sys_qs8_shifts_weights(kc) ? QS8_OFFSET : 0; }

static int32_t zero_point_of_qs8(size_t kc, const struct xnn_qs8_packing_params* params) {
  return params->input_zero_point + (xnnpack_sys_qs8_shifts_weights(kc) ? 0 : QS8_OFFSET);
}

static void pack_qs8(
    size_t g, size_t nc, size_t ks, size_t kc, const int8_t* k, const int32_t* b, void* packed_weights,
    size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  xnnpack_sys_pack_qs8_goki_32c4(
      g, nc, ks, kc, k, b, packed_weights, extra_bytes, zero_point_of_qs8(kc, params), shift_of_qs8(kc));
}

// XNNPACK's signature for packing.
static void pack_qs8_gio(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, size_t k_stride, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  xnnpack_sys_pack_qs8_gio_32c4(
      nc, kc, k_stride, k, b, packed_weights, extra_bytes, zero_point_of_qs8(kc, params), shift_of_qs8(kc));
}

static void pack_qu8(
    size_t g, size_t nc, size_t ks, size_t kc, const uint8_t* k, const int32_t* b, void* packed_weights,
    size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  xnnpack_sys_pack_qu8_goki_32c4(g, nc, ks, kc, k, b, packed_weights, extra_bytes, params);
}

// XNNPACK's signatures for packing. The tile is that of the configuration.
#define PACKING(type, byte) \
  static void pack_##type##_goki( \
      size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const byte* k, const int32_t* b, \
      const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_##type##_packing_params* params) \
  { \
    pack_##type(g, nc, ks, kc, k, b, packed_weights, extra_bytes, params); \
  } \
  static void pack_##type##_goi( \
      size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const byte* k, const int32_t* b, \
      const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_##type##_packing_params* params) \
  { \
    pack_##type(g, nc, /*positions=*/1, kc, k, b, packed_weights, extra_bytes, params); \
  }

PACKING(qs8, int8_t)
PACKING(qu8, uint8_t)

#define CHOOSE_QS8_GEMM \
  qs8_gemm_configs[0].pack_weights_and_biases = NULL; \
  qs8_gemm_configs[0].packed_stride_weights_and_biases = NULL; \
  qs8_gemm_configs[0].pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) pack_qs8_gio; \
  qs8_gemm_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qs8_goi; \
  qs8_gemm_configs[0].pack_igemm_goki = (xnn_pack_conv_goki_w_fn) pack_qs8_goki; \
  /* Weights of one input for each group, which get 128 added. */ \
  qs8_gemm_configs[0].pack_igemm_kgo = (xnn_pack_conv_kgo_w_fn) xnn_pack_qs8_to_qu8_conv_kgo_w; \
  GEMM(qs8)

// Without `pack_weights_and_biases` fully connected layers pack with the functions of convolutions.
#define CHOOSE_QU8_GEMM \
  qu8_gemm_configs[0].init.qu8 = xnnpack_sys_init_fixed_point_qu8_params; \
  qu8_gemm_configs[0].pack_weights_and_biases = NULL; \
  qu8_gemm_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qu8_goi; \
  GEMM(qu8)

CHOICE(qu8_gemm, xnn_gemm_config, 1, xnnpack_sys_qu8_bytes_config, has_avx512vnni(), CHOOSE_QU8_GEMM)
CHOICE(
    qs8_gemm, xnn_gemm_config, 1, xnnpack_sys_qs8_bytes_config, has_avx512vnni(),
    CHOOSE_QS8_GEMM)

#if AMX

#define AMX_TILE(type, rows) \
  type##_amx_configs[0].minmax.gemm[rows - 1] = \
      GEMM_UKERNEL(xnnpack_sys_##type##_gemm_minmax_ukernel_32x32c4__avx512amx); \
  type##_amx_configs[0].minmax.igemm[rows - 1] = \
      IGEMM_UKERNEL(xnnpack_sys_##type##_igemm_minmax_ukernel_##rows##x32c4__avx512amx)

// XNNPACK chooses the tile by its estimate of the cost.
#define CHOOSE_AMX(type) \
  memset(&type##_amx_configs[0].minmax, 0, sizeof(type##_amx_configs[0].minmax)); \
  AMX_TILE(type, 1); \
  AMX_TILE(type, 16); \
  AMX_TILE(type, 25); \
  AMX_TILE(type, 32); \
  type##_amx_configs[0].mr = Q8_AMX_ROWS

#define CHOOSE_QS8_AMX \
  CHOOSE_AMX(qs8); \
  qs8_amx_configs[0].pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) xnnpack_sys_pack_amx_gio; \
  qs8_amx_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnnpack_sys_pack_amx_goi; \
  qs8_amx_configs[0].pack_igemm_goki = (xnn_pack_conv_goki_w_fn) xnnpack_sys_pack_amx_goki

CHOICE(qu8_amx, xnn_gemm_config, 1, xnnpack_sys_qu8_gemm_config, xnnpack_sys_has_amx(), CHOOSE_AMX(qu8))
CHOICE(qs8_amx, xnn_gemm_config, 1, xnnpack_sys_qs8_gemm_config, xnnpack_sys_has_amx(), CHOOSE_QS8_AMX)
#endif

#else

NO_CHOICE(qu8_gemm, xnn_gemm_config, xnnpack_sys_qu8_bytes_config)
NO_CHOICE(qs8_gemm, xnn_gemm_config, xnnpack_sys_qs8_bytes_config)

#endif

#if !AMX
NO_CHOICE(qu8_amx, xnn_gemm_config, xnnpack_sys_qu8_gemm_config)
NO_CHOICE(qs8_amx, xnn_gemm_config, xnnpack_sys_qs8_gemm_config)
#endif

const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config_for(size_t outputs, size_t positions, size_t inputs) {
#if XNN_ARCH_ARM64
  return xnnpack_sys_qs8_neon_config_for(inputs);
#else
#if XNN_ARCH_X86_64 && XNN_ENABLE_AVX512SKX
  // XNNPACK's microkernels for AVX512 multiply eight inputs of 16 channels at a time: half as many loads of inputs as in those of this
  // crate, whose tiles have 32 channels. Without VNNI that also pays for few products, and those for AVX2 take up to 8 channels.
  const bool are_few = outputs <= 16 && (positions * inputs >= 64 || xnnpack_sys_uses_q8_bytes());
  if (are_few && xnn_init_hardware_config()->use_x86_avx512skx) {
    const bool have_no_vnni = !xnn_init_hardware_config()->use_x86_avx512vnni;
    return outputs <= 8 && have_no_vnni ? xnnpack_sys_qs8_few_bytes_config() : xnn_init_qs8_qc8w_gemm_config();
  }
#endif
  return xnnpack_sys_amx_pays(inputs) ? xnnpack_sys_qs8_amx_config() : xnnpack_sys_qs8_gemm_config();
#endif
}

const struct xnn_gemm_config* xnnpack_sys_qs8_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags) {
  const bool has_many_rows = xnnpack_sys_take_flag(flags, XNNPACK_SYS_MANY_ROWS);
#if XNN_ARCH_ARM64
  (void) has_many_rows;
  return xnnpack_sys_qs8_neon_config_for(inputs);
#else
  return xnnpack_sys_amx_pays_for_rows(inputs, outputs, has_many_rows) ? xnnpack_sys_qs8_amx_config()
                                                                        : xnnpack_sys_qs8_gemm_config();
#endif
}

void xnnpack_sys_init_qu8_params(
    xnn_init_qu8_conv_minmax_params_fn init, struct xnnpack_sys_rescaling rescaling,
    union xnn_qu8_conv_minmax_params* params, uint8_t kernel_zero_point, float scale, uint8_t output_zero_point,
    uint8_t output_min, uint8_t output_max)
{
#if FIXED_POINT_QU8
  if (init == xnnpack_sys_init_fixed_point_qu8_params) {
    rescale_qu8(rescaling, params, kernel_zero_point, output_zero_point, output_min, output_max);
    return;
  }
#else
  (void) rescaling;
#endif
  init(params, kernel_zero_point, scale, output_zero_point, output_min, output_max);
}

const struct xnn_gemm_config* xnnpack_sys_qu8_gemm_config_for(size_t inputs) {
#if XNN_ARCH_ARM64
  return xnnpack_sys_qu8_neon_config_for(inputs);
#else
  return xnnpack_sys_amx_pays(inputs) ? xnnpack_sys_qu8_amx_config() : xnnpack_sys_qu8_gemm_config();
#endif
}

const struct xnn_gemm_config* xnnpack_sys_transposed_qu8_gemm_config_for(size_t inputs) {
  return XNN_ARCH_ARM64 || xnnpack_sys_uses_q8_bytes() ? xnnpack_sys_qu8_plain_config() : xnnpack_sys_qu8_gemm_config_for(inputs);
}

const struct xnn_gemm_config* xnnpack_sys_qu8_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags) {
  const bool has_many_rows = xnnpack_sys_take_flag(flags, XNNPACK_SYS_MANY_ROWS);
  return xnnpack_sys_amx_pays_for_rows(inputs, outputs, has_many_rows) ? xnnpack_sys_qu8_amx_config()
                                                                       : xnnpack_sys_qu8_gemm_config();
}

void xnnpack_sys_pack_qu8_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
#if AVX512VNNI
  if (has_avx512vnni()) {
    pack_qu8_goki(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
    return;
  }
#endif
  if (xnnpack_sys_pack_qu8_bytes_goki(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params)) {
    return;
  }
  xnn_pack_qu8_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}
