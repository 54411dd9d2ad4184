// Which microkernels operators get: those of this crate (`depthwise.h`, `gemm_q8.h`, `unary_f32.h` and others) where the
// processor can run them, XNNPACK's otherwise. XNNPACK's operators ask here for the configurations named below.

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "creation.h"
#include "depthwise.h"
#include "depthwise_configs.h"
#include "depthwise_qd8.h"
#include "elementwise_qu8.h"
#include "fixed_point.h"
#include "gemm_q8.h"
#include "gemm_qd8.h"
#include "mean_f32.h"
#include "pool_f32.h"
#include "pool_q8.h"
#include "pool_rows_f32.h"
#include "quantize_qd8.h"
#include "resize_f32.h"
#include "unary_f32.h"
#include "xnnpack/common.h"
#include "xnnpack/config.h"
#include "xnnpack/gemm.h"
#include "xnnpack/hardware-config.h"
#include "xnnpack/init-once.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams-init.h"
#include "xnnpack/pack.h"
#include "xnnpack/reference-config.h"

#define AVX512F (XNN_ARCH_X86_64 && XNN_ENABLE_AVX512F)
#define AVX512VNNI (AVX512F && XNN_ENABLE_AVX512VNNI && XNN_ENABLE_AVX512VBMI)
#define AVX512VNNIGFNI (AVX512VNNI && XNN_ENABLE_AVX512VNNIGFNI)

// A function that answers in the place of XNNPACK's `original`: with a copy that `change` was made to.
#define CHOICE(name, type, count, original, usable, change) \
  const struct type* xnnpack_sys_##name##_config(void); \
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
  const struct type* xnnpack_sys_##name##_config(void); \
  const struct type* xnnpack_sys_##name##_config(void) { return original(); }

static const struct xnn_unary_elementwise_config* f32_to_s32(void) {
  return xnn_init_unary_reference_config(xnn_unary_convert, xnn_datatype_fp32, xnn_datatype_int32);
}

// Of the layer that microkernels were last asked for.
static __thread struct xnnpack_sys_rescaling qu8_rescaling;

#if AVX512F

static bool has_avx512f(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512f;
}

// Replaces the microkernels of 9 and of 25 weights.
static void choose_depthwise(
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

// Rows of fully connected layers are positions of a sequence or images of a batch, often a power of two of them:
// XNNPACK's tile of 7 rows leaves a part of one over, that of 8 does not.
static void choose_rows(struct xnn_gemm_config* config) {
  enum { ROWS = 8 };
  config->minmax.gemm[ROWS - 1] =
      xnn_init_hmp_gemm_ukernel((xnn_gemm_ukernel_fn) xnn_f32_gemm_minmax_ukernel_8x32__avx512f_broadcast);
  config->mr = ROWS;
}

// Of three microkernels the last is for windows of any size.
#define CHOOSE_ARGMAXPOOL \
  f32_argmaxpool_configs[XNN_MAX_F32_ARGMAXPOOL_UKERNELS - 1].mp = \
      (xnn_argmaxpool_multipass_ukernel_fn) xnnpack_sys_f32_argmaxpool

#define CHOOSE_MAXPOOL f32_maxpool_configs[0].ukernel = (xnn_maxpool_ukernel_fn) xnnpack_sys_f32_maxpool

#define CHOOSE_UNARY(name) \
  name##_configs[0].ukernel = (xnn_vunary_ukernel_fn) xnnpack_sys_##name

xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void) {
  return has_avx512f() ? xnnpack_sys_avx512_f32_to_qd8 : xnnpack_sys_portable_f32_to_qd8;
}

CHOICE(f32_rows_gemm, xnn_gemm_config, 1, xnn_init_f32_gemm_config, has_avx512f(), choose_rows(f32_rows_gemm_configs))
CHOICE(
    f32_argmaxpool, xnn_argmaxpool_config, XNN_MAX_F32_ARGMAXPOOL_UKERNELS, xnn_init_f32_argmaxpool_config, has_avx512f(),
    CHOOSE_ARGMAXPOOL)
CHOICE(
    f32_avgpool, xnn_avgpool_config, 1, xnn_init_f32_avgpool_config, has_avx512f(),
    f32_avgpool_configs[0].unipass = (xnn_avgpool_unipass_ukernel_fn) xnnpack_sys_f32_avgpool)
CHOICE(f32_maxpool, xnn_maxpool_config, 1, xnn_init_f32_maxpool_config, has_avx512f(), CHOOSE_MAXPOOL)
CHOICE(
    f32_ibilinear, xnn_ibilinear_config, 1, xnn_init_f32_ibilinear_config, has_avx512f(),
    f32_ibilinear_configs[0].ukernel = (xnn_ibilinear_ukernel_fn) xnnpack_sys_f32_ibilinear)
CHOICE(f32_exp, xnn_unary_elementwise_config, 1, xnn_init_f32_exp_config, has_avx512f(), CHOOSE_UNARY(f32_exp))
CHOICE(f32_rsqrt, xnn_unary_elementwise_config, 1, xnn_init_f32_rsqrt_config, has_avx512f(), CHOOSE_UNARY(f32_rsqrt))
CHOICE(
    f32_sigmoid, xnn_unary_elementwise_config, 1, xnn_init_f32_sigmoid_config, has_avx512f(), CHOOSE_UNARY(f32_sigmoid))
CHOICE(f32_sqrt, xnn_unary_elementwise_config, 1, xnn_init_f32_sqrt_config, has_avx512f(), CHOOSE_UNARY(f32_sqrt))
CHOICE(f32_to_s32, xnn_unary_elementwise_config, 1, f32_to_s32, has_avx512f(), CHOOSE_UNARY(f32_to_s32))

#else

xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void) { return xnnpack_sys_portable_f32_to_qd8; }

NO_CHOICE(f32_rows_gemm, xnn_gemm_config, xnn_init_f32_gemm_config)
NO_CHOICE(f32_argmaxpool, xnn_argmaxpool_config, xnn_init_f32_argmaxpool_config)
NO_CHOICE(f32_avgpool, xnn_avgpool_config, xnn_init_f32_avgpool_config)
NO_CHOICE(f32_maxpool, xnn_maxpool_config, xnn_init_f32_maxpool_config)
NO_CHOICE(f32_ibilinear, xnn_ibilinear_config, xnn_init_f32_ibilinear_config)
NO_CHOICE(f32_exp, xnn_unary_elementwise_config, xnn_init_f32_exp_config)
NO_CHOICE(f32_rsqrt, xnn_unary_elementwise_config, xnn_init_f32_rsqrt_config)
NO_CHOICE(f32_sigmoid, xnn_unary_elementwise_config, xnn_init_f32_sigmoid_config)
NO_CHOICE(f32_sqrt, xnn_unary_elementwise_config, xnn_init_f32_sqrt_config)
NO_CHOICE(f32_to_s32, xnn_unary_elementwise_config, f32_to_s32)

#endif

CHOICE(
    f32_mean, xnn_reduce_config, 1, xnn_init_f32_rdsum_config, true, f32_mean_configs[0].rd_ukernel = xnnpack_sys_f32_mean)

// What XNNPACK has no microkernel for.
const struct xnn_unary_elementwise_config* xnnpack_sys_unary_reference_config(
    enum xnn_unary_operator op, enum xnn_datatype input, enum xnn_datatype output);

const struct xnn_unary_elementwise_config* xnnpack_sys_unary_reference_config(
    enum xnn_unary_operator op, enum xnn_datatype input, enum xnn_datatype output)
{
  const bool to_integers = op == xnn_unary_convert && input == xnn_datatype_fp32 && output == xnn_datatype_int32;
  return to_integers ? xnnpack_sys_f32_to_s32_config() : xnn_init_unary_reference_config(op, input, output);
}

// Configurations that nothing is set in are chosen for no convolution.
static struct xnn_dwconv_config f32_depthwise_configs[XNN_MAX_F32_DWCONV_UKERNELS];

XNN_INIT_ONCE_GUARD(f32_depthwise);

static void init_f32_depthwise_config(void) {
  memcpy(
      f32_depthwise_configs, xnn_init_f32_dwconv_config(),
      XNNPACKS_F32_DEPTHWISE_CONFIGS * sizeof(struct xnn_dwconv_config));
#if AVX512F
  if (!has_avx512f()) {
    return;
  }
  static const struct {
    uint8_t weights;
    xnn_dwconv_unipass_ukernel_fn microkernel;
  } large[LARGE_F32_DEPTHWISE_CONFIGS] = {
      {49, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_49p16c},
      {81, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_81p16c},
      {121, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_121p16c},
      {169, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_169p16c},
      {225, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_depthwise_225p16c},
  };
  DEPTHWISE(f32, XNNPACKS_F32_DEPTHWISE_CONFIGS);
  for (size_t i = 0; i < LARGE_F32_DEPTHWISE_CONFIGS; i++) {
    f32_depthwise_configs[XNNPACKS_F32_DEPTHWISE_CONFIGS + i] = (struct xnn_dwconv_config) {
        .minmax.unipass = large[i].microkernel,
        .init.f32 = xnn_init_f32_minmax_scalar_params,
        .channel_tile = DEPTHWISE_LANES,
        .channel_subtile = DEPTHWISE_LANES,
        .channel_round = 1,
        .primary_tile = large[i].weights,
    };
  }
#endif
}

const struct xnn_dwconv_config* xnnpack_sys_f32_depthwise_config(void);

const struct xnn_dwconv_config* xnnpack_sys_f32_depthwise_config(void) {
  if (xnn_init_f32_dwconv_config() == NULL) {
    return NULL;
  }
  XNN_INIT_ONCE(f32_depthwise);
  return f32_depthwise_configs;
}

#if AVX512VNNI

static bool has_avx512vnni(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512vnni && hardware->use_x86_avx512vbmi;
}

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
      type##_gemm_configs, (xnn_gemm_ukernel_fn) xnnpack_sys_##type##_gemm_1x32c4, \
      (xnn_gemm_ukernel_fn) xnnpack_sys_##type##_gemm_7x32c4, (xnn_igemm_ukernel_fn) xnnpack_sys_##type##_igemm_1x32c4, \
      (xnn_igemm_ukernel_fn) xnnpack_sys_##type##_igemm_7x32c4)

// XNNPACK has faster ones for AMX.
static bool has_avx512vnni_at_best(void) {
  return has_avx512vnni() && !xnn_init_hardware_config()->use_x86_avx512amx;
}

// What is added to weights of int8 with so many inputs, and what the inputs' zero point is to them.
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

// As XNNPACK's signatures for packing, which name the tile, all of them.
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

// XNNPACK's signatures for packing, which name the tile: it is that of the configuration they are in.
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
  GEMM(qs8)

static size_t init_qu8_params(
    union xnn_qu8_conv_minmax_params params[1], uint8_t kernel_zero_point, float scale, uint8_t output_zero_point,
    uint8_t output_min, uint8_t output_max)
{
  const struct fixed_point by = fixed_point(qu8_rescaling.scale);
  params->rndnu_scalar.kernel_zero_point = kernel_zero_point;
  params->rndnu_scalar.multiplier = by.multiplier;
  params->rndnu_scalar.shift = (uint32_t) by.exponent;
  params->rndnu_scalar.rounding = qu8_rescaling.rounds;
  params->rndnu_scalar.output_min = output_min;
  params->rndnu_scalar.output_max = output_max;
  params->rndnu_scalar.output_zero_point = output_zero_point;
  return sizeof(params->rndnu_scalar);
}

// Fully connected layers would pack with the function that is taken away, which leaves them what convolutions have.
#define CHOOSE_QU8_GEMM \
  qu8_gemm_configs[0].init.qu8 = init_qu8_params; \
  qu8_gemm_configs[0].pack_weights_and_biases = NULL; \
  qu8_gemm_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qu8_goi; \
  GEMM(qu8)

#define QD8_DEPTHWISE_OF(taps) \
  has_avx512vnni() ? (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_qd8_depthwise_##taps##p16c \
                   : xnnpack_sys_portable_qd8_depthwise_of_##taps

CHOICE(
    qs8_depthwise, xnn_dwconv_config, XNN_MAX_QC8_DWCONV_UKERNELS, xnn_init_qs8_qc8w_dwconv_config, has_avx512vnni(),
    DEPTHWISE(qs8, XNN_MAX_QC8_DWCONV_UKERNELS))

static struct xnn_dwconv_config qu8_depthwise_configs[XNN_MAX_QU8_DWCONV_UKERNELS];

// All of them are replaced, and so how they are told to round.
static void init_qu8_depthwise(void) {
  for (size_t i = 0; i < XNN_MAX_QU8_DWCONV_UKERNELS; i++) {
    qu8_depthwise_configs[i].init.qu8 = init_qu8_params;
  }
}

CHOICE(
    qu8_depthwise, xnn_dwconv_config, XNN_MAX_QU8_DWCONV_UKERNELS, xnn_init_qu8_dwconv_config, has_avx512vnni(),
    DEPTHWISE(qu8, XNN_MAX_QU8_DWCONV_UKERNELS); init_qu8_depthwise())

#define CHOOSE_QU8_ADD \
  qu8_add_configs[0].op_ukernel = xnnpack_sys_qu8_add; \
  qu8_add_configs[0].opc_ukernel = xnnpack_sys_qu8_add_number; \
  qu8_add_configs[0].ropc_ukernel = xnnpack_sys_qu8_add_number; \
  qu8_add_configs[0].init = xnnpack_sys_init_qu8_add_params

#define CHOOSE_QU8_CONVERT \
  qu8_convert_configs[0].ukernel = xnnpack_sys_qu8_convert; \
  qu8_convert_configs[0].init = xnnpack_sys_init_qu8_convert_params

CHOICE(
    s8_maxpool, xnn_maxpool_config, 1, xnn_init_s8_maxpool_config, has_avx512vnni(),
    s8_maxpool_configs[0].ukernel = (xnn_maxpool_ukernel_fn) xnnpack_sys_s8_maxpool)
CHOICE(
    u8_maxpool, xnn_maxpool_config, 1, xnn_init_u8_maxpool_config, has_avx512vnni(),
    u8_maxpool_configs[0].ukernel = (xnn_maxpool_ukernel_fn) xnnpack_sys_u8_maxpool)
CHOICE(qu8_add, xnn_binary_elementwise_config, 1, xnn_init_qu8_vadd_config, has_avx512vnni(), CHOOSE_QU8_ADD)
CHOICE(
    qu8_convert, xnn_unary_elementwise_config, 1, xnn_init_qu8_cvt_config, has_avx512vnni(), CHOOSE_QU8_CONVERT)
CHOICE(qu8_gemm, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, has_avx512vnni(), CHOOSE_QU8_GEMM)
CHOICE(
    qs8_gemm, xnn_gemm_config, 1, xnn_init_qs8_qc8w_gemm_config, has_avx512vnni_at_best(),
    CHOOSE_QS8_GEMM)

// XNNPACK's microkernels multiply eight inputs at a time, for 16 channels: half as many loads of inputs.
static bool are_few(size_t outputs, size_t products) { return outputs <= 16 && products >= 64; }

#else

static bool are_few(size_t outputs, size_t products) { return false; }

#define QD8_DEPTHWISE_OF(taps) xnnpack_sys_portable_qd8_depthwise_of_##taps

NO_CHOICE(qs8_depthwise, xnn_dwconv_config, xnn_init_qs8_qc8w_dwconv_config)
NO_CHOICE(qu8_depthwise, xnn_dwconv_config, xnn_init_qu8_dwconv_config)
NO_CHOICE(s8_maxpool, xnn_maxpool_config, xnn_init_s8_maxpool_config)
NO_CHOICE(u8_maxpool, xnn_maxpool_config, xnn_init_u8_maxpool_config)
NO_CHOICE(qu8_add, xnn_binary_elementwise_config, xnn_init_qu8_vadd_config)
NO_CHOICE(qu8_convert, xnn_unary_elementwise_config, xnn_init_qu8_cvt_config)
NO_CHOICE(qu8_gemm, xnn_gemm_config, xnn_init_qu8_gemm_config)
NO_CHOICE(qs8_gemm, xnn_gemm_config, xnn_init_qs8_qc8w_gemm_config)

#endif

#if AVX512VNNIGFNI

static bool has_avx512vnnigfni(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512vnnigfni;
}

// XNNPACK has faster ones for AMX.
static bool has_avx512vnnigfni_at_best(void) {
  return has_avx512vnnigfni() && !xnn_init_hardware_config()->use_x86_avx512amx;
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
      type##_qc8w_igemm_configs, (xnn_dqigemm_ukernel_fn) xnnpack_sys_##type##_qc8w_igemm_1x32c8, \
      (xnn_dqigemm_ukernel_fn) xnnpack_sys_##type##_qc8w_igemm_6x32c8)

#define QD8_GEMM_OF(type, rows, of_rows) \
  choose_qd8_gemm( \
      qd8_##type##_gemm_configs, rows, (xnn_dqgemm_ukernel_fn) xnnpack_sys_qd8_##type##_gemm_1x32c4, \
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
  QD8_GEMM_OF(qc8w, QC8W_GEMM_ROWS, xnnpack_sys_qd8_qc8w_gemm_7x32c4)

CHOICE(
    qd8_qc8w_gemm, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, has_avx512vnnigfni_at_best(), CHOOSE_QC8W_GEMM)
// Also where XNNPACK has faster ones: only these round as TFLite's reference kernels.
CHOICE(
    qd8_qc8w_igemm, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, has_avx512vnnigfni(), CHOOSE_IGEMM(qd8))
CHOICE(
    qdu8_qc8w_igemm, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, has_avx512vnnigfni(), CHOOSE_IGEMM(qdu8))
CHOICE(
    qd8_qb4w_gemm, xnn_gemm_config, 1, xnn_init_qd8_f32_qb4w_gemm_config, has_avx512vnnigfni(),
    QD8_GEMM_OF(qb4w, QB4W_GEMM_ROWS, xnnpack_sys_qd8_qb4w_gemm_6x32c4))

#else

static bool has_avx512vnnigfni(void) { return false; }

NO_CHOICE(qd8_qc8w_gemm, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qd8_qc8w_igemm, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qdu8_qc8w_igemm, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qd8_qb4w_gemm, xnn_gemm_config, xnn_init_qd8_f32_qb4w_gemm_config)

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

bool xnnpack_sys_has_image_microkernels(void) { return has_avx512vnnigfni(); }

const struct xnn_gemm_config* xnnpack_sys_image_gemm_config(uint32_t* flags) {
  const bool is_unsigned = (*flags & XNNPACK_SYS_UNSIGNED_IMAGES) != 0;
  // Weights are packed and kept under the same name.
  *flags &= ~XNNPACK_SYS_UNSIGNED_IMAGES;
  return is_unsigned ? xnnpack_sys_qdu8_qc8w_igemm_config() : xnnpack_sys_qd8_qc8w_igemm_config();
}

static __thread bool creates_qd8_depthwise;

void xnnpack_sys_creates_qd8_depthwise(bool are) { creates_qd8_depthwise = are; }

// What is asked for convolutions of int8, and for those of inputs quantized at run time, which are created as such.
const struct xnn_dwconv_config* xnnpack_sys_int8_depthwise_config(void);

const struct xnn_dwconv_config* xnnpack_sys_int8_depthwise_config(void) {
  if (!creates_qd8_depthwise) {
    return xnnpack_sys_qs8_depthwise_config();
  }
  XNN_INIT_ONCE(qd8_depthwise);
  return qd8_depthwise_configs;
}

const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config_for(size_t outputs, size_t products) {
  return are_few(outputs, products) ? xnn_init_qs8_qc8w_gemm_config() : xnnpack_sys_qs8_gemm_config();
}

const struct xnn_gemm_config* xnnpack_sys_qu8_gemm_config_for(struct xnnpack_sys_rescaling rescaling) {
  qu8_rescaling = rescaling;
  return xnnpack_sys_qu8_gemm_config();
}

// XNNPACK packs convolutions of uint8 with one function, whatever their configuration says.
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
  xnn_pack_qu8_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}

// The same for convolutions of inputs quantized at run time, whose outputs may be of half precision, with tiles of XNNPACK's.
void xnnpack_sys_pack_qd8_conv_goki_w(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const float* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
#if AVX512VNNIGFNI
  const bool is_ours = nr == QD8_GEMM_CHANNELS && sr == 1 && has_avx512vnnigfni() && has_avx512vnni();
  if (is_ours && kr == 1 << QD8_CONV_LOG2_DEPTH) {
    xnnpack_sys_pack_qd8_goki_32c8(g, nc, ks, kc, k, packed_weights, extra_bytes);
    return;
  }
#endif
  xnn_pack_qs8_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed_weights, extra_bytes, params);
}
