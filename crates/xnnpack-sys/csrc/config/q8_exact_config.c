// Microkernels for ARM that add products of 8-bit integers in 32 bits, for layers with weights of -128, see `operators.h`.
//
// On processors without dot products, XNNPACK's microkernels for products (`mlal`), and those of this crate in files with `pairs` in their
// names, add two products in 16 bits, which overflows for two products of -128 and -128. TFLite's specification
// excludes weights of -128, and microkernels that widen operands first take at least a third more instructions: only layers with such
// weights use them.
//
// uint8 becomes int8 when 128 is subtracted. The least weight, 0, occurs in most layers, but seldom twice where both products are added.

#include "config/config.h"

#include <stdint.h>

#include "config/operators.h"
#include "config/q8_bytes_config.h"
#include "ukernels/q8_neon.h"
#include "xnnpack/dwconv.h"
#include "xnnpack/gemm.h"
#include "xnnpack/igemm.h"

#if XNN_ARCH_ARM64

// Whether one of the weights is -128.
static bool has_least_weight(const void* kernel, size_t weights) {
  return kernel != NULL && memchr(kernel, (uint8_t) INT8_MIN, weights) != NULL;
}

// Whether two weights of 0 meet in a step of microkernels that add two products. `inputs` are the weights of a channel at a position.
static bool has_least_pair(const uint8_t* kernel, size_t weights, size_t inputs) {
  if (kernel == NULL) {
    return true;
  }
  const uint8_t* const end = kernel + weights;
  for (const uint8_t* at = kernel; (at = memchr(at, 0, (size_t) (end - at))) != NULL; at++) {
    const size_t input = (size_t) (at - kernel) % inputs;
    const bool is_first = input % (2 * Q8_NEON_PAIRS_APART) < Q8_NEON_PAIRS_APART;
    if (is_first && input + Q8_NEON_PAIRS_APART < inputs && at[Q8_NEON_PAIRS_APART] == 0) {
      return true;
    }
  }
  return false;
}

// Rows and channels of the tile, whose weights are packed one by one.
enum { ROWS = 4, CHANNELS = 16 };

static void choose_exact_tile(struct xnn_gemm_config* config) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->mr = ROWS;
  config->nr = CHANNELS;
  config->log2_kr = 0;
  config->log2_sr = 0;
}

static void choose_qs8(struct xnn_gemm_config* config) {
  choose_exact_tile(config);
  config->minmax.gemm[0] = GEMM_UKERNEL(xnn_qs8_qc8w_gemm_minmax_fp32_ukernel_1x16__neonv8_mlal_lane);
  config->minmax.gemm[ROWS - 1] =
      GEMM_UKERNEL(xnn_qs8_qc8w_gemm_minmax_fp32_ukernel_4x16__asm_aarch64_neon_mlal_lane_ld64);
  config->minmax.igemm[0] = IGEMM_UKERNEL(xnn_qs8_qc8w_igemm_minmax_fp32_ukernel_1x16__neonv8_mlal_lane);
  config->minmax.igemm[ROWS - 1] =
      IGEMM_UKERNEL(xnn_qs8_qc8w_igemm_minmax_fp32_ukernel_4x16__asm_aarch64_neon_mlal_lane_ld64);
}

static void choose_qd8(struct xnn_gemm_config* config) {
  choose_exact_tile(config);
  config->minmax.dqgemm[0] = DQGEMM_UKERNEL(xnn_qd8_f32_qc8w_gemm_minmax_ukernel_1x16__neon_mlal_lane);
  config->minmax.dqgemm[ROWS - 1] = DQGEMM_UKERNEL(xnn_qd8_f32_qc8w_gemm_minmax_ukernel_4x16__neon_mlal_lane);
  config->minmax.dqigemm[0] = DQIGEMM_UKERNEL(xnn_qd8_f32_qc8w_igemm_minmax_ukernel_1x16__neon_mlal_lane);
  config->minmax.dqigemm[ROWS - 1] = DQIGEMM_UKERNEL(xnn_qd8_f32_qc8w_igemm_minmax_ukernel_4x16__neon_mlal_lane);
}

// Kernels of up to three weights use the microkernel for nine.
static void choose_exact_depthwise(struct xnn_dwconv_config* configs) {
  for (size_t i = 0; i < XNN_MAX_QC8_DWCONV_UKERNELS; i++) {
    struct xnn_dwconv_config* config = &configs[i];
    if (config->primary_tile == 25) {
      config->minmax.unipass =
          (xnn_dwconv_unipass_ukernel_fn) xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_25p16c__neonv8_mul16;
    } else {
      config->minmax.unipass =
          (xnn_dwconv_unipass_ukernel_fn) xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_9p16c__neonv8_mul16;
      config->primary_tile = 9;
    }
  }
}

CHOICE(exact_qs8, xnn_gemm_config, 1, xnn_init_qs8_qc8w_gemm_config, true, choose_qs8(exact_qs8_configs))
CHOICE(exact_qd8, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, true, choose_qd8(exact_qd8_configs))
CHOICE(
    exact_depthwise, xnn_dwconv_config, XNN_MAX_QC8_DWCONV_UKERNELS, xnn_init_qs8_qc8w_dwconv_config, true,
    choose_exact_depthwise(exact_depthwise_configs))

const struct xnn_gemm_config* xnnpack_sys_exact_qu8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights, size_t inputs)
{
  const bool is_of_pairs = config == xnnpack_sys_qu8_pairs_config();
  return is_of_pairs && has_least_pair(kernel, weights, inputs) ? xnnpack_sys_qu8_bytes_config() : config;
}

const struct xnn_gemm_config* xnnpack_sys_exact_qs8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights)
{
  return !has_dot_products() && has_least_weight(kernel, weights) ? xnnpack_sys_exact_qs8_config() : config;
}

const struct xnn_gemm_config* xnnpack_sys_exact_qd8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights)
{
  if (has_dot_products() || config == xnnpack_sys_qd8_bytes_config() || !has_least_weight(kernel, weights)) {
    return config;
  }
  const bool is_xnnpacks = config == xnn_init_qd8_f32_qc8w_gemm_config();
  return is_xnnpacks ? xnnpack_sys_exact_qd8_config() : xnnpack_sys_qd8_bytes_config();
}

const struct xnn_dwconv_config* xnnpack_sys_exact_depthwise_config_for(
    const struct xnn_dwconv_config* configs, const void* kernel, size_t weights)
{
  // Microkernels for more than 25 weights add in 32 bits (`depthwise_q8_neon.c`).
  const bool is_exact = has_dot_products() || configs->primary_tile > 25;
  if (is_exact || !has_least_weight(kernel, weights)) {
    return configs;
  }
  const bool is_dynamic = configs != xnnpack_sys_qs8_depthwise_config();
  return is_dynamic ? xnnpack_sys_exact_qd8_depthwise_config() : xnnpack_sys_exact_depthwise_config();
}

#else

const struct xnn_gemm_config* xnnpack_sys_exact_qu8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights, size_t inputs)
{
  return config;
}

const struct xnn_gemm_config* xnnpack_sys_exact_qs8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights)
{
  return config;
}

const struct xnn_gemm_config* xnnpack_sys_exact_qd8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights)
{
  return config;
}

const struct xnn_dwconv_config* xnnpack_sys_exact_depthwise_config_for(
    const struct xnn_dwconv_config* configs, const void* kernel, size_t weights)
{
  return configs;
}

#endif
