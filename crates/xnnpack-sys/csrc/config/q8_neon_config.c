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

static bool is_prepared(size_t nr, size_t kr) {
  return nr == Q8_NEON_CHANNELS && kr == 1 << Q8_NEON_LOG2_DEPTH && !has_dot_products();
}

// Adds the products of weights and of the 128 that microkernels without dot products take off inputs. Padding is the zero point.
static void prepare_qu8(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, void* packed, size_t extra_bytes,
    const struct xnn_qu8_packing_params* params)
{
  const size_t depth = ks * round_up_po2(kc, kr);
  uint8_t* at = packed;
  for (size_t tile = 0; tile < g * divide_round_up(nc, nr); tile++) {
    const uint8_t* weights = at + nr * sizeof(int32_t);
    for (size_t channel = 0; channel < nr; channel++) {
      uint32_t sum = 0;
      for (size_t k = 0; k < depth; k++) {
        sum += (uint32_t) weights[(k / kr * nr + channel) * kr + k % kr] - params->kernel_zero_point;
      }
      uint32_t bias;
      memcpy(&bias, at + channel * sizeof(bias), sizeof(bias));
      bias += 128 * sum;
      memcpy(at + channel * sizeof(bias), &bias, sizeof(bias));
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

static void choose_tile(struct xnn_gemm_config* config, uint8_t log2_depth) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->mr = Q8_NEON_ROWS;
  config->nr = Q8_NEON_CHANNELS;
  config->log2_kr = log2_depth;
  config->log2_sr = 0;
}

#define UNSIGNED(type, rows, suffix) \
  config->minmax.gemm[rows - 1] = GEMM_UKERNEL(xnnpack_sys_##type##_gemm_minmax_ukernel_##suffix); \
  config->minmax.igemm[rows - 1] = IGEMM_UKERNEL(xnnpack_sys_##type##_igemm_minmax_ukernel_##suffix)

#define DYNAMIC(type, rows, suffix) \
  config->minmax.dqigemm[rows - 1] = DQIGEMM_UKERNEL(xnnpack_sys_##type##_f32_qc8w_igemm_minmax_ukernel_##suffix)

#define TILE(macro, type, depth, log2_depth, isa) \
  choose_tile(config, log2_depth); \
  macro(type, 1, 1x16##depth##__##isa); \
  macro(type, 4, 4x16##depth##__##isa)

// Builds without microkernels for dot products do not refer to them.
#if XNN_ENABLE_ARM_DOTPROD
#define CHOOSE_NEONDOT(macro, type) \
  if (has_dot_products()) { \
    TILE(macro, type, c4, Q8_NEONDOT_LOG2_DEPTH, neondot); \
    return; \
  }
#else
#define CHOOSE_NEONDOT(macro, type)
#endif

static void choose_qu8(struct xnn_gemm_config* config) {
  config->init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  CHOOSE_NEONDOT(UNSIGNED, qu8)
  // Without these, fully connected layers pack with the functions of convolutions.
  config->pack_weights_and_biases = NULL;
  config->packed_stride_weights_and_biases = NULL;
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qu8_goi;
  config->pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) pack_qu8_gio;
  TILE(UNSIGNED, qu8, c2, Q8_NEON_LOG2_DEPTH, neon);
}

// Transposed convolutions: XNNPACK packs their weights.
static void choose_plain_qu8(struct xnn_gemm_config* config) {
  config->init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  CHOOSE_NEONDOT(UNSIGNED, qu8)
  TILE(UNSIGNED, plain_qu8, , 0, neon);
}

// Convolutions of images quantized at run time.
static void choose_qd8(struct xnn_gemm_config* config) {
  CHOOSE_NEONDOT(DYNAMIC, qd8)
  TILE(DYNAMIC, qd8, c2, Q8_NEON_LOG2_DEPTH, neon);
}

CHOICE(qu8_bytes, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, true, choose_qu8(qu8_bytes_configs))
CHOICE(qu8_plain, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, true, choose_plain_qu8(qu8_plain_configs))
CHOICE(qd8_bytes, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, true, choose_qd8(qd8_bytes_configs))

#endif
