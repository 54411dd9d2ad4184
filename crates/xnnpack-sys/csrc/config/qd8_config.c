// Microkernels for inputs that are quantized at run time, see `operators.h`.

#include "config/config.h"

#include <stdint.h>

#include "ukernels/amx.h"
#include "config/operators.h"
#include "config/q8_bytes_config.h"
#include "hooks/flags.h"
#include "packing/convolution.h"
#include "hooks/depthwise_qd8.h"
#include "ukernels/gemm_q8.h"
#include "ukernels/gemm_qd8.h"
#include "ukernels/q8_neon.h"
#include "hooks/quantize_qd8.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams-init.h"
#include "xnnpack/pack.h"

#if AVX512VNNIGFNI

static bool has_avx512vnnigfni(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512vnnigfni;
}

static void choose_qd8_tile(struct xnn_gemm_config* config, size_t rows, size_t log2_depth) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->mr = rows;
  config->nr = QD8_GEMM_CHANNELS;
  config->log2_kr = log2_depth;
  config->log2_sr = 0;
}

static void choose_qd8_gemm(
    struct xnn_gemm_config* config, size_t rows, xnn_dqgemm_ukernel_fn of_1, xnn_dqgemm_ukernel_fn of_rows)
{
  choose_qd8_tile(config, rows, QD8_GEMM_LOG2_DEPTH);
  config->minmax.dqgemm[0] = xnn_init_hmp_dqgemm_ukernel(of_1);
  config->minmax.dqgemm[rows - 1] = xnn_init_hmp_dqgemm_ukernel(of_rows);
}

static void choose_qd8_igemm(
    struct xnn_gemm_config* config, xnn_dqigemm_ukernel_fn of_1, xnn_dqigemm_ukernel_fn of_rows)
{
  choose_qd8_tile(config, QD8_CONV_ROWS, QD8_CONV_LOG2_DEPTH);
  config->minmax.dqigemm[0] = xnn_init_hmp_dqigemm_ukernel(of_1);
  config->minmax.dqigemm[QD8_CONV_ROWS - 1] = xnn_init_hmp_dqigemm_ukernel(of_rows);
}

#define CHOOSE_IGEMM(type) \
  choose_qd8_igemm( \
      type##_qc8w_igemm_configs, \
      (xnn_dqigemm_ukernel_fn) xnnpack_sys_##type##_f32_qc8w_igemm_minmax_ukernel_1x32c8__avx512vnnigfni, \
      (xnn_dqigemm_ukernel_fn) xnnpack_sys_##type##_f32_qc8w_igemm_minmax_ukernel_6x32c8__avx512vnnigfni)

#define QD8_GEMM_OF(type, rows, of_rows) \
  choose_qd8_gemm( \
      qd8_##type##_gemm_configs, rows, \
      (xnn_dqgemm_ukernel_fn) xnnpack_sys_qd8_f32_##type##_gemm_minmax_ukernel_1x32c4__avx512vnnigfni, \
      (xnn_dqgemm_ukernel_fn) of_rows)

static void pack_qd8_goi(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  xnnpack_sys_pack_qs8_goki_32c4(
      g, nc, /*positions=*/1, kc, k, b, packed_weights, extra_bytes, params->input_zero_point, QS8_OFFSET);
}

static void pack_qd8_gio(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, size_t k_stride, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  xnnpack_sys_pack_qs8_gio_32c4(
      nc, kc, k_stride, k, b, packed_weights, extra_bytes, params->input_zero_point, QS8_OFFSET);
}

#define CHOOSE_QC8W_GEMM \
  qd8_qc8w_gemm_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qd8_goi; \
  qd8_qc8w_gemm_configs[0].pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) pack_qd8_gio; \
  qd8_qc8w_gemm_configs[0].pack_weights_and_biases = NULL; \
  qd8_qc8w_gemm_configs[0].packed_stride_weights_and_biases = NULL; \
  QD8_GEMM_OF(qc8w, QC8W_GEMM_ROWS, xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_8x32c4__avx512vnnigfni); \
  qd8_qc8w_gemm_configs[0].minmax.dqgemm[QC8W_GEMM_FEW_ROWS - 1] = \
      DQGEMM_UKERNEL(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_4x32c4__avx512vnnigfni)

CHOICE(
    qd8_qc8w_gemm, xnn_gemm_config, 1, xnnpack_sys_qd8_bytes_rows_config, has_avx512vnnigfni(), CHOOSE_QC8W_GEMM)
CHOICE(
    qd8_qc8w_igemm, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, has_avx512vnnigfni(), CHOOSE_IGEMM(qd8))
CHOICE(
    qdu8_qc8w_igemm, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, has_avx512vnnigfni(), CHOOSE_IGEMM(qdu8))
CHOICE(
    qd8_qb4w_gemm, xnn_gemm_config, 1, xnnpack_sys_qd8_qb4w_config, has_avx512vnnigfni(),
    QD8_GEMM_OF(qb4w, QB4W_GEMM_ROWS, xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_6x32c4__avx512vnnigfni))

#if AMX

static bool has_amx(void) { return has_avx512vnnigfni() && xnnpack_sys_has_amx(); }

#define AMX_TILE(rows) \
  qd8_amx_configs[0].minmax.dqgemm[rows - 1] = \
      DQGEMM_UKERNEL(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_32x32c4__avx512amx); \
  qd8_amx_configs[0].minmax.dqigemm[rows - 1] = \
      DQIGEMM_UKERNEL(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##rows##x32c4__avx512amx)

#define CHOOSE_QD8_AMX \
  choose_qd8_tile(qd8_amx_configs, QD8_AMX_ROWS, QD8_GEMM_LOG2_DEPTH); \
  AMX_TILE(1); \
  AMX_TILE(16); \
  AMX_TILE(25); \
  AMX_TILE(32); \
  qd8_amx_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnnpack_sys_pack_amx_goi; \
  qd8_amx_configs[0].pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) xnnpack_sys_pack_amx_gio; \
  qd8_amx_configs[0].pack_weights_and_biases = NULL; \
  qd8_amx_configs[0].packed_stride_weights_and_biases = NULL

#define CHOOSE_QC4W_AMX \
  choose_qd8_gemm( \
      qd8_qc4w_amx_configs, QD8_AMX_ROWS, \
      (xnn_dqgemm_ukernel_fn) xnnpack_sys_qd8_f32_qc4w_gemm_minmax_ukernel_32x32c4__avx512amx, \
      (xnn_dqgemm_ukernel_fn) xnnpack_sys_qd8_f32_qc4w_gemm_minmax_ukernel_32x32c4__avx512amx)

CHOICE(qd8_amx, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, has_amx(), CHOOSE_QD8_AMX)
CHOICE(qd8_qc4w_amx, xnn_gemm_config, 1, xnn_init_qd8_f32_qc4w_gemm_config, has_amx(), CHOOSE_QC4W_AMX)
#endif

#else

static bool has_avx512vnnigfni(void) { return false; }

NO_CHOICE(qd8_qc8w_gemm, xnn_gemm_config, xnnpack_sys_qd8_bytes_rows_config)
NO_CHOICE(qd8_qc8w_igemm, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qdu8_qc8w_igemm, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qd8_qb4w_gemm, xnn_gemm_config, xnnpack_sys_qd8_qb4w_config)

#endif

#if !(AVX512VNNIGFNI && AMX)
static bool has_amx(void) { return false; }

NO_CHOICE(qd8_amx, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qd8_qc4w_amx, xnn_gemm_config, xnn_init_qd8_f32_qc4w_gemm_config)
#endif

#define QD8_DEPTHWISE_WITH(taps, isa) \
  (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_##taps##p16c__##isa

#if XNN_ARCH_X86_64
#define OLD_QD8_DEPTHWISE(taps) \
  has_sse41() \
      ? (xnn_dwconv_unipass_ukernel_fn) X86_UKERNEL(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_##taps##p16c) \
      : QD8_DEPTHWISE_WITH(taps, scalar)
#elif XNN_ARCH_ARM64
#define OLD_QD8_DEPTHWISE(taps) ARM64_DEPTHWISE(QD8_DEPTHWISE_WITH, taps)
#else
#define OLD_QD8_DEPTHWISE(taps) QD8_DEPTHWISE_WITH(taps, scalar)
#endif

#if AVX512VNNI
#define QD8_DEPTHWISE_OF(taps) has_avx512vnni() ? QD8_DEPTHWISE_WITH(taps, avx512vnni) : OLD_QD8_DEPTHWISE(taps)
#else
#define QD8_DEPTHWISE_OF(taps) OLD_QD8_DEPTHWISE(taps)
#endif

static struct xnn_dwconv_config qd8_depthwise_configs[XNN_MAX_QC8_DWCONV_UKERNELS];

XNN_INIT_ONCE_GUARD(qd8_depthwise);

static void set_qd8_depthwise(struct xnn_dwconv_config* config, uint8_t taps, xnn_dwconv_unipass_ukernel_fn microkernel) {
  *config = (struct xnn_dwconv_config) {
      .minmax.unipass = microkernel,
      .init.qs8_qc8w = xnn_init_qs8_qc8w_conv_minmax_fp32_scalar_params,
      .channel_tile = DEPTHWISE_LANES,
      .channel_subtile = DEPTHWISE_LANES,
      .channel_round = 1,
      .primary_tile = taps,
  };
}

static void init_qd8_depthwise_config(void) {
  set_qd8_depthwise(&qd8_depthwise_configs[0], 9, QD8_DEPTHWISE_OF(9));
  set_qd8_depthwise(&qd8_depthwise_configs[1], 25, QD8_DEPTHWISE_OF(25));
}

#if XNN_ARCH_ARM64
static struct xnn_dwconv_config exact_qd8_depthwise_configs[XNN_MAX_QC8_DWCONV_UKERNELS];

XNN_INIT_ONCE_GUARD(exact_qd8_depthwise);

static void init_exact_qd8_depthwise_config(void) {
  set_qd8_depthwise(&exact_qd8_depthwise_configs[0], 9, QD8_DEPTHWISE_WITH(9, exact_neon));
  set_qd8_depthwise(&exact_qd8_depthwise_configs[1], 25, QD8_DEPTHWISE_WITH(25, exact_neon));
}

const struct xnn_dwconv_config* xnnpack_sys_exact_qd8_depthwise_config(void) {
  XNN_INIT_ONCE(exact_qd8_depthwise);
  return exact_qd8_depthwise_configs;
}
#endif

// AMX multiplies images with a sign as fast.
bool xnnpack_sys_has_unsigned_image_microkernels(void) { return has_avx512vnnigfni() && !has_amx(); }

const struct xnn_gemm_config* xnnpack_sys_qd8_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags) {
  const bool has_many_rows = xnnpack_sys_take_flag(flags, XNNPACK_SYS_MANY_ROWS);
#if XNN_ARCH_ARM64
  (void) has_many_rows;
  return xnnpack_sys_qd8_neon_rows_config_for(inputs);
#else
  return has_amx() && xnnpack_sys_amx_pays_for_rows(inputs, outputs, has_many_rows) ? xnnpack_sys_qd8_amx_config()
                                                                                     : xnnpack_sys_qd8_qc8w_gemm_config();
#endif
}

// 4-bit weights are unpacked for every tile of rows, which pays only if there are many.
const struct xnn_gemm_config* xnnpack_sys_qd8_qc4w_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags) {
  const bool has_many_rows = xnnpack_sys_take_flag(flags, XNNPACK_SYS_MANY_ROWS);
  return has_many_rows && has_amx() && xnnpack_sys_amx_pays_for_rows(inputs, outputs, has_many_rows)
             ? xnnpack_sys_qd8_qc4w_amx_config()
             : xnnpack_sys_qd8_qc4w_config();
}

const struct xnn_gemm_config* xnnpack_sys_image_gemm_config_for(size_t inputs, size_t outputs, uint32_t* flags) {
#if XNN_ARCH_ARM64
  (void) outputs;
  return xnnpack_sys_qd8_neon_config_for(inputs);
#else
  if (has_amx()) {
    return xnnpack_sys_qd8_amx_config();
  }
  if (xnnpack_sys_uses_q8_bytes()) {
    return xnnpack_sys_qd8_bytes_config_for(outputs);
  }
  const bool is_unsigned = (*flags & XNNPACK_SYS_UNSIGNED_IMAGES) != 0;
  // Weights are packed the same way and have the same key in the weights cache.
  *flags &= ~XNNPACK_SYS_UNSIGNED_IMAGES;
  return is_unsigned ? xnnpack_sys_qdu8_qc8w_igemm_config() : xnnpack_sys_qd8_qc8w_igemm_config();
#endif
}

const struct xnn_dwconv_config* xnnpack_sys_int8_depthwise_config_for(size_t weights, uint32_t* flags) {
  const bool is_qd8 = (*flags & XNNPACK_SYS_QD8_DEPTHWISE) != 0;
  *flags &= ~XNNPACK_SYS_QD8_DEPTHWISE;
  if (!is_qd8) {
    return xnnpack_sys_qs8_depthwise_config_for(weights);
  }
  XNN_INIT_ONCE(qd8_depthwise);
  return qd8_depthwise_configs;
}

// Outputs may be fp16, with tiles of XNNPACK's.
void xnnpack_sys_pack_qd8_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const float* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
#if AVX512VNNIGFNI
  const bool is_ours = nr == QD8_GEMM_CHANNELS && sr == 1 && has_avx512vnnigfni() && has_avx512vnni();
#if AMX
  if (is_ours && kr == 1 << QD8_GEMM_LOG2_DEPTH) {
    xnnpack_sys_pack_amx_goki(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
    return;
  }
#endif
  if (is_ours && kr == 1 << QD8_CONV_LOG2_DEPTH) {
    xnnpack_sys_pack_qd8_goki_32c8(g, nc, ks, kc, k, packed_weights, extra_bytes);
    return;
  }
#endif
  if (xnnpack_sys_pack_qd8_bytes_goki(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params)) {
    return;
  }
  xnn_pack_qs8_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}
