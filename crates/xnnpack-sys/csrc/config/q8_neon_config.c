// Microkernels for 8-bit integers on 64-bit ARM, see `ukernels/gemm_q8_neon.h`.

#include "config/config.h"

#include <stdint.h>

#include "config/operators.h"
#include "config/q8_bytes_config.h"
#include "config/q8_packing.h"
#include "packing/convolution.h"
#include "ukernels/q8_neon.h"
#include "xnnpack/math.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/pack.h"

#if XNN_ARCH_ARM64

#define OFFSET 128

static bool is_of_pairs(size_t kr) { return kr == 1 << Q8_NEON_PAIRS_LOG2_DEPTH; }

static bool is_prepared(size_t nr, size_t kr) {
  return nr == Q8_NEON_CHANNELS && (kr == 1 << Q8_NEON_LOG2_DEPTH || is_of_pairs(kr)) && !has_dot_products();
}

// Adds the products of weights and of the 128 that microkernels without dot products subtract from inputs. Padding is the zero point.
// The microkernels for many inputs also need 128 subtracted from weights.
static void prepare_qu8(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, void* packed, size_t extra_bytes,
    const struct xnn_qu8_packing_params* params)
{
  const size_t depth = ks * round_up_po2(kc, kr);
  uint8_t* at = packed;
  for (size_t tile = 0; tile < g * divide_round_up(nc, nr); tile++) {
    uint8_t* weights = at + nr * sizeof(int32_t);
    uint32_t sums[Q8_NEON_CHANNELS] = {0};
    const uint8_t* next = weights;
    for (size_t k = 0; k < depth; k += kr) {
      for (size_t channel = 0; channel < Q8_NEON_CHANNELS; channel++) {
        for (size_t i = 0; i < kr; i++) {
          sums[channel] += *next++;
        }
      }
    }
    for (size_t channel = 0; channel < Q8_NEON_CHANNELS; channel++) {
      uint32_t bias;
      memcpy(&bias, at + channel * sizeof(bias), sizeof(bias));
      bias += OFFSET * (sums[channel] - (uint32_t) (depth * (size_t) params->kernel_zero_point));
      memcpy(at + channel * sizeof(bias), &bias, sizeof(bias));
    }
    for (size_t i = 0; is_of_pairs(kr) && i < nr * depth; i++) {
      weights[i] ^= OFFSET;
    }
    at += nr * (sizeof(int32_t) + depth) + extra_bytes;
  }
}

PACKING(qu8, uint8_t, qu8, prepare_qu8)

bool xnnpack_sys_pack_qu8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  if (!is_prepared(nr, kr)) {
    return false;
  }
  pack_qu8_goki(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  return true;
}

void xnnpack_sys_pack_qu8_conv_kgo_w(
    size_t g, size_t nc, size_t ks, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  if (is_prepared(nr, kr)) {
    pack_qu8_kgo(g, nc, ks, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  } else {
    xnn_pack_qu8_conv_kgo_w(g, nc, ks, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  }
}

static void choose_neon_tile(struct xnn_gemm_config* config, uint8_t rows, uint8_t log2_depth) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->mr = rows;
  config->nr = Q8_NEON_CHANNELS;
  config->log2_kr = log2_depth;
  config->log2_sr = 0;
}

// Microkernels for int8 and uint8, for convolutions of images, and for these and rows.
#define FIXED(type, rows, suffix) \
  config->minmax.gemm[(rows) - 1] = GEMM_UKERNEL(xnnpack_sys_##type##_gemm_minmax_ukernel_##suffix); \
  config->minmax.igemm[(rows) - 1] = IGEMM_UKERNEL(xnnpack_sys_##type##_igemm_minmax_ukernel_##suffix)

#define DYNAMIC(type, rows, suffix) \
  config->minmax.dqigemm[(rows) - 1] = DQIGEMM_UKERNEL(xnnpack_sys_##type##_f32_qc8w_igemm_minmax_ukernel_##suffix)

#define DYNAMIC_AND_ROWS(type, rows, suffix) \
  config->minmax.dqgemm[(rows) - 1] = DQGEMM_UKERNEL(xnnpack_sys_##type##_f32_qc8w_gemm_minmax_ukernel_##suffix); \
  DYNAMIC(type, rows, suffix)

#define NEON_TILE(macro, type, depth, log2_depth, isa) \
  choose_neon_tile(config, Q8_NEON_ROWS, log2_depth); \
  macro(type, 1, 1x16##depth##__##isa); \
  macro(type, Q8_NEON_ROWS, 4x16##depth##__##isa)

// Builds without microkernels for an instruction set do not refer to them.
#if XNN_ENABLE_ARM_DOTPROD
#define CHOOSE_NEONDOT(macro, type) \
  if (has_dot_products()) { \
    NEON_TILE(macro, type, c4, Q8_NEONDOT_LOG2_DEPTH, neondot); \
    return; \
  }
#else
#define CHOOSE_NEONDOT(macro, type)
#endif

#if XNN_ENABLE_ARM_I8MM
#define CHOOSE_NEONI8MM(macro, type) \
  if (has_i8mm()) { \
    choose_neon_tile(config, Q8_NEONI8MM_ROWS, Q8_NEONI8MM_LOG2_DEPTH); \
    macro(type, 1, 1x16c8__neoni8mm); \
    macro(type, Q8_NEONI8MM_ROWS, 6x16c8__neoni8mm); \
    return; \
  }
#else
#define CHOOSE_NEONI8MM(macro, type)
#endif

// Rows of a tile depend on the processor's length of vectors. Single rows use dot products.
#if SME && XNN_ENABLE_ARM_DOTPROD
#define CHOOSE_SME(macro, type) \
  if (has_sme() && has_dot_products() && xnnpack_sys_sme_multiplies_bytes()) { \
    const uint8_t rows = (uint8_t) sme_side_of(xnnpack_sys_sme_bytes()); \
    choose_neon_tile(config, rows, Q8_NEONDOT_LOG2_DEPTH); \
    macro(type, 1, 1x16c4__neondot); \
    macro(type, rows, x16c4__sme); \
    return; \
  }
#else
#define CHOOSE_SME(macro, type)
#endif

// Makes products pack as convolutions do, with `prepare_qu8`.
static void choose_packing(struct xnn_gemm_config* config) {
  config->pack_weights_and_biases = NULL;
  config->packed_stride_weights_and_biases = NULL;
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qu8_goi;
  config->pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) pack_qu8_gio;
}

static void choose_qu8(struct xnn_gemm_config* config) {
  config->init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  CHOOSE_NEONI8MM(FIXED, qu8)
  CHOOSE_NEONDOT(FIXED, qu8)
  choose_packing(config);
  NEON_TILE(FIXED, qu8, c2, Q8_NEON_LOG2_DEPTH, neon);
}

// Transposed convolutions: XNNPACK packs their weights.
static void choose_plain_qu8(struct xnn_gemm_config* config) {
  config->init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  CHOOSE_NEONDOT(FIXED, qu8)
  NEON_TILE(FIXED, plain_qu8, , 0, neon);
}

// For layers with inputs that fill steps. Weights of -128, or 0 for uint8, may need others, see `q8_exact_config.c`.
#define PAIRS_TILE(macro, type) \
  choose_neon_tile(config, Q8_NEON_PAIRS_ROWS, Q8_NEON_PAIRS_LOG2_DEPTH); \
  macro(type, 1, 1x16c16__neon); \
  macro(type, Q8_NEON_PAIRS_ROWS, 3x16c16__neon)

static void choose_qu8_pairs(struct xnn_gemm_config* config) {
  config->init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  choose_packing(config);
  PAIRS_TILE(FIXED, qu8);
}

static void choose_qs8_pairs(struct xnn_gemm_config* config) { PAIRS_TILE(FIXED, qs8); }
static void choose_qd8_pairs(struct xnn_gemm_config* config) { PAIRS_TILE(DYNAMIC_AND_ROWS, qd8); }

// On processors without matrix products, int8 otherwise keeps XNNPACK's microkernels.
static void choose_qs8(struct xnn_gemm_config* config) {
  CHOOSE_SME(FIXED, qs8)
  CHOOSE_NEONI8MM(FIXED, qs8)
}

// Convolutions of images, and products of rows, quantized at run time. With dot products alone, rows keep XNNPACK's microkernels.
static void choose_qd8(struct xnn_gemm_config* config) {
  CHOOSE_SME(DYNAMIC_AND_ROWS, qd8)
  CHOOSE_NEONI8MM(DYNAMIC_AND_ROWS, qd8)
  CHOOSE_NEONDOT(DYNAMIC, qd8)
  NEON_TILE(DYNAMIC_AND_ROWS, qd8, c2, Q8_NEON_LOG2_DEPTH, neon);
}

CHOICE(qs8_bytes, xnn_gemm_config, 1, xnn_init_qs8_qc8w_gemm_config, true, choose_qs8(qs8_bytes_configs))
CHOICE(qu8_bytes, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, true, choose_qu8(qu8_bytes_configs))
CHOICE(qu8_plain, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, true, choose_plain_qu8(qu8_plain_configs))
CHOICE(qd8_bytes, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, true, choose_qd8(qd8_bytes_configs))

CHOICE(qu8_pairs, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, true, choose_qu8_pairs(qu8_pairs_configs))
CHOICE(qs8_pairs, xnn_gemm_config, 1, xnn_init_qs8_qc8w_gemm_config, true, choose_qs8_pairs(qs8_pairs_configs))
CHOICE(qd8_pairs, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, true, choose_qd8_pairs(qd8_pairs_configs))

// Whether a processor without dot products multiplies faster in pairs, although each position is padded to whole steps.
static bool pairs_pay(size_t inputs) {
  return !has_dot_products() && 4 * round_up_po2(inputs, 1 << Q8_NEON_PAIRS_LOG2_DEPTH) < 5 * inputs;
}

const struct xnn_gemm_config* xnnpack_sys_qu8_neon_config_for(size_t inputs) {
  return pairs_pay(inputs) ? xnnpack_sys_qu8_pairs_config() : xnnpack_sys_qu8_bytes_config();
}

const struct xnn_gemm_config* xnnpack_sys_qs8_neon_config_for(size_t inputs) {
  return pairs_pay(inputs) ? xnnpack_sys_qs8_pairs_config() : xnnpack_sys_qs8_bytes_config();
}

const struct xnn_gemm_config* xnnpack_sys_qd8_neon_config_for(size_t inputs) {
  return pairs_pay(inputs) ? xnnpack_sys_qd8_pairs_config() : xnnpack_sys_qd8_bytes_config();
}

const struct xnn_gemm_config* xnnpack_sys_qd8_neon_rows_config_for(size_t inputs) {
  const bool has_no_own = has_dot_products() && !has_i8mm();
  return has_no_own ? xnn_init_qd8_f32_qc8w_gemm_config() : xnnpack_sys_qd8_neon_config_for(inputs);
}

#endif
