// Microkernels for floats, see `operators.h`.

#include "config/config.h"

#include "config/operators.h"
#include "hooks/flags.h"
#include "ukernels/gemm_f32.h"
#include "ukernels/mean_f32.h"
#include "ukernels/pool_f32.h"
#include "ukernels/pool_rows_f32.h"
#include "hooks/quantize_qd8.h"
#include "ukernels/resize_f32.h"
#include "ukernels/softmax_f32.h"
#include "ukernels/special_f32.h"
#include "ukernels/unary_f32.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams-init.h"
#include "xnnpack/pack.h"
#include "xnnpack/reference-config.h"

static const struct xnn_unary_elementwise_config* f32_to_s32(void) {
  return xnn_init_unary_reference_config(xnn_unary_convert, xnn_datatype_fp32, xnn_datatype_int32);
}

#define CHOOSE_UNARY(name, microkernel) name##_configs[0].ukernel = (xnn_vunary_ukernel_fn) microkernel

// Whether the processor has SSE4.1 and nothing newer.
static bool has_no_avx(void) {
#if XNN_ARCH_X86_64
  return has_sse41() && !has_avx();
#else
  return false;
#endif
}

#if XNN_ARCH_X86_64
// Whether the processor has FMA, for which XNNPACK has microkernels, but not AVX2.
static bool has_fma_alone(void) { return has_fma() && !has_avx2(); }

// Convolutions and matrix products take two inputs at a time. AVX loads a float into all lanes, and XNNPACK's microkernels need no
// other instruction for it.
static void choose_pairs(struct xnn_gemm_config* config) {
  enum { ROWS = 4 };
  PRODUCTS(config, 1, 4c2, sse41);
  PRODUCTS(config, 4, 4c2, sse41);
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnnpack_sys_pack_f32_pairs_goi;
  config->mr = ROWS;
  config->nr = F32_PAIRS_CHANNELS;
  config->log2_kr = F32_PAIRS_LOG2_STEP;
}

CHOICE(f32_pairs_gemm, xnn_gemm_config, 1, xnn_init_f32_gemm_config, has_no_avx(), choose_pairs(f32_pairs_gemm_configs))
#else
NO_CHOICE(f32_pairs_gemm, xnn_gemm_config, xnn_init_f32_gemm_config)
#endif

#if XNN_ARCH_X86_64
// Replaces the microkernels of XNNPACK's tile, with tiles of as many channels.
static void choose_gemm(struct xnn_gemm_config* config) {
#if AVX512F
  if (has_avx512f()) {
    PRODUCTS(config, 1, 32, avx512f);
    PRODUCTS(config, 7, 32, avx512f);
    return;
  }
#endif
  // XNNPACK has another packing for the first Zen.
  if (config->nr != 16 || config->log2_sr != 0 || has_fma_alone()) {
    return;
  }
  memset(&config->minmax, 0, sizeof(config->minmax));
  if (has_avx2()) {
    PRODUCTS(config, 1, 16, avx2);
    PRODUCTS(config, 6, 16, avx2);
  } else {
    PRODUCTS(config, 1, 16, avx);
    PRODUCTS(config, 6, 16, avx);
  }
  config->mr = 6;
}

CHOICE(f32_wide_gemm, xnn_gemm_config, 1, xnn_init_f32_gemm_config, has_avx(), choose_gemm(f32_wide_gemm_configs))
#elif SME
// Replaces the tile: its rows and channels depend on the processor's length of vectors.
static void choose_gemm(struct xnn_gemm_config* config) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  memset(&config->relu, 0, sizeof(config->relu));
  memset(&config->linear, 0, sizeof(config->linear));
  config->mr = (uint8_t) sme_side_of(xnnpack_sys_sme_bytes());
  config->nr = (uint8_t) sme_side_of(xnnpack_sys_sme_bytes());
  config->log2_kr = 0;
  config->log2_sr = 0;
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnnpack_sys_pack_f32_goi__sme;
  config->minmax.gemm[0] = GEMM_UKERNEL(xnnpack_sys_f32_gemm_minmax_ukernel_rows__sme);
  config->minmax.igemm[0] = IGEMM_UKERNEL(xnnpack_sys_f32_igemm_minmax_ukernel_1__sme);
  config->minmax.gemm[config->mr - 1] = GEMM_UKERNEL(xnnpack_sys_f32_gemm_minmax_ukernel__sme);
  config->minmax.igemm[config->mr - 1] = IGEMM_UKERNEL(xnnpack_sys_f32_igemm_minmax_ukernel__sme);
}

CHOICE(f32_wide_gemm, xnn_gemm_config, 1, xnn_init_f32_gemm_config, has_sme(), choose_gemm(f32_wide_gemm_configs))
#else
NO_CHOICE(f32_wide_gemm, xnn_gemm_config, xnn_init_f32_gemm_config)
#endif

#if AVX512F

// Returns the packed bytes of a channel.
static size_t half_weights_stride(
    const struct xnn_gemm_config* config, size_t inputs, size_t padded_inputs, size_t extra_bytes)
{
  return sizeof(float) + inputs * sizeof(uint16_t);
}

// Rows of fully connected layers are positions of a sequence or images of a batch, often a power of two of them:
// XNNPACK's tile of 7 rows leaves a part of one over, that of 8 does not. Fewer than 8 rows take that of 7 or of 4.
static void choose_rows(struct xnn_gemm_config* config) {
  enum { FEW_ROWS = 4, ROWS = 8 };
  config->minmax.gemm[FEW_ROWS - 1] = GEMM_UKERNEL(xnnpack_sys_f32_gemm_minmax_ukernel_4x32__avx512f);
  config->minmax.gemm[ROWS - 1] = GEMM_UKERNEL(xnnpack_sys_f32_gemm_minmax_ukernel_8x32__avx512f);
  config->mr = ROWS;
}

// fp16 weights, for few rows.
static void choose_halves(struct xnn_gemm_config* config) {
  enum { FEW_ROWS = 4, ROWS = 8 };
  // The microkernels for other numbers of rows read fp32 weights.
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->minmax.gemm[FEW_ROWS - 1] = GEMM_UKERNEL(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_4x32__avx512f);
  config->minmax.gemm[0] = GEMM_UKERNEL(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_1x32__avx512f);
  config->minmax.gemm[ROWS - 1] = GEMM_UKERNEL(xnnpack_sys_f32_f16w_gemm_minmax_ukernel_8x32__avx512f);
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnnpack_sys_pack_f32_f16w_goi_x32;
  config->packed_stride_weights_and_biases = half_weights_stride;
}

// The last of three microkernels is for windows of any size.
#define CHOOSE_ARGMAXPOOL \
  f32_argmaxpool_configs[XNN_MAX_F32_ARGMAXPOOL_UKERNELS - 1].mp = \
      (xnn_argmaxpool_multipass_ukernel_fn) xnnpack_sys_f32_argmaxpool_ukernel__avx512f

CHOICE(
    f32_rows_gemm, xnn_gemm_config, 1, xnnpack_sys_f32_wide_gemm_config, has_avx512f(),
    choose_rows(f32_rows_gemm_configs))
CHOICE(
    f32_f16w_gemm, xnn_gemm_config, 1, xnnpack_sys_f32_rows_gemm_config, has_avx512f(), choose_halves(f32_f16w_gemm_configs))
CHOICE(
    f32_argmaxpool, xnn_argmaxpool_config, XNN_MAX_F32_ARGMAXPOOL_UKERNELS, xnn_init_f32_argmaxpool_config, has_avx512f(),
    CHOOSE_ARGMAXPOOL)
CHOICE(
    f32_sigmoid, xnn_unary_elementwise_config, 1, xnn_init_f32_sigmoid_config, has_avx512f(),
    CHOOSE_UNARY(f32_sigmoid, xnnpack_sys_f32_vsigmoid_ukernel__avx512f))
CHOICE(
    f32_to_s32, xnn_unary_elementwise_config, 1, f32_to_s32, has_avx512f(),
    CHOOSE_UNARY(f32_to_s32, xnnpack_sys_f32_s32_vcvt_ukernel__avx512f))

#else

NO_CHOICE(f32_rows_gemm, xnn_gemm_config, xnnpack_sys_f32_wide_gemm_config)
NO_CHOICE(f32_f16w_gemm, xnn_gemm_config, xnnpack_sys_f32_rows_gemm_config)
NO_CHOICE(f32_argmaxpool, xnn_argmaxpool_config, xnn_init_f32_argmaxpool_config)
NO_CHOICE(f32_sigmoid, xnn_unary_elementwise_config, xnn_init_f32_sigmoid_config)
NO_CHOICE(f32_to_s32, xnn_unary_elementwise_config, f32_to_s32)

#endif

// A microkernel that there is for AVX512F, for AVX and for SSE4.1.
#define OF_FLOATS(microkernel) \
  WITH_AVX512F( \
      xnnpack_sys_f32_##microkernel##__avx512f, \
      (has_avx() ? xnnpack_sys_f32_##microkernel##__avx : xnnpack_sys_f32_##microkernel##__sse41))

// A microkernel that there is for AVX512F, for AVX2 and for AVX, and `otherwise`.
#define OF_VECTORS(microkernel, otherwise) \
  WITH_AVX512F( \
      xnnpack_sys_f32_##microkernel##__avx512f, \
      (has_avx2()  ? xnnpack_sys_f32_##microkernel##__avx2 \
       : has_avx() ? xnnpack_sys_f32_##microkernel##__avx \
                   : otherwise))

xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void) {
#if XNN_ARCH_X86_64
  const xnnpack_sys_f32_to_qd8_fn older =
      has_avx2() ? xnnpack_sys_f32_to_qd8__avx2 : has_sse41() ? xnnpack_sys_f32_to_qd8__sse41 : xnnpack_sys_portable_f32_to_qd8;
  return WITH_AVX512F(xnnpack_sys_avx512_f32_to_qd8, older);
#elif XNN_ARCH_ARM64
  return xnnpack_sys_neon_f32_to_qd8;
#else
  return xnnpack_sys_portable_f32_to_qd8;
#endif
}

xnnpack_sys_f32_softmax_rows_fn xnnpack_sys_f32_softmax_rows_function(size_t count) {
#if AVX512F
  if (has_avx512f()) {
    return count <= SOFTMAX_F32_FLOATS(64) ? xnnpack_sys_f32_softmax_rows__avx512f : NULL;
  }
#endif
#if XNN_ARCH_X86_64
  if (has_avx() && count <= SOFTMAX_F32_FLOATS(32)) {
    return has_avx2() ? xnnpack_sys_f32_softmax_rows__avx2 : xnnpack_sys_f32_softmax_rows__avx;
  }
#endif
  return NULL;
}

#if XNN_ARCH_X86_64
#define RANGE_WITHOUT_AVX512 \
  (has_avx2()    ? xnnpack_sys_f32_rminmax_ukernel__avx2 \
   : has_sse41() ? xnnpack_sys_f32_rminmax_ukernel__sse41 \
                 : xnnpack_sys_f32_rminmax_ukernel__sse)

CHOICE(
    f32_maxpool, xnn_maxpool_config, 1, xnn_init_f32_maxpool_config, has_sse41(),
    f32_maxpool_configs[0].ukernel = (xnn_maxpool_ukernel_fn) OF_FLOATS(maxpool_minmax_ukernel))
CHOICE(
    f32_avgpool, xnn_avgpool_config, 1, xnn_init_f32_avgpool_config, has_sse41(),
    f32_avgpool_configs[0].unipass = (xnn_avgpool_unipass_ukernel_fn) OF_FLOATS(avgpool_minmax_ukernel_9x))
CHOICE(
    f32_pavgpool, xnn_pavgpool_config, 1, xnn_init_f32_pavgpool_config, has_sse41(),
    f32_pavgpool_configs[0].unipass = (xnn_pavgpool_unipass_ukernel_fn) OF_FLOATS(pavgpool_minmax_ukernel_9x))
CHOICE(
    f32_ibilinear, xnn_ibilinear_config, 1, xnn_init_f32_ibilinear_config, has_sse41(),
    f32_ibilinear_configs[0].ukernel = (xnn_ibilinear_ukernel_fn) OF_FLOATS(ibilinear_ukernel))
CHOICE(
    f32_exp, xnn_unary_elementwise_config, 1, xnn_init_f32_exp_config, has_sse41(),
    CHOOSE_UNARY(f32_exp, OF_VECTORS(vexp_ukernel, xnnpack_sys_f32_vexp_ukernel__sse41)))
CHOICE(
    f32_log, xnn_unary_elementwise_config, 1, xnn_init_f32_log_config, true,
    CHOOSE_UNARY(
        f32_log, (has_fma_alone() ? xnnpack_sys_f32_vlog_ukernel__scalar
                                  : OF_VECTORS(vlog_ukernel, xnnpack_sys_f32_vlog_ukernel__scalar))))
CHOICE(
    f32_rsqrt, xnn_unary_elementwise_config, 1, xnn_init_f32_rsqrt_config, true,
    CHOOSE_UNARY(
        f32_rsqrt,
        OF_VECTORS(
            vrsqrt_ukernel,
            (has_sse41() ? xnnpack_sys_f32_vrsqrt_ukernel__sse41 : xnnpack_sys_f32_vrsqrt_ukernel__sse))))
CHOICE(
    f32_sqrt, xnn_unary_elementwise_config, 1, xnn_init_f32_sqrt_config, true,
    CHOOSE_UNARY(
        f32_sqrt, WITH_AVX512F(
                      xnnpack_sys_f32_vsqrt_ukernel__avx512f,
                      (has_avx() ? xnnpack_sys_f32_vsqrt_ukernel__avx : xnnpack_sys_f32_vsqrt_ukernel__sse))))
CHOICE(
    f32_range, xnn_reduce_config, 1, xnn_init_f32_rminmax_config, true,
    f32_range_configs[0].ukernel = (xnn_reduce_ukernel_fn) WITH_AVX512F(
        xnnpack_sys_f32_rminmax_ukernel__avx512f, RANGE_WITHOUT_AVX512))
#else
NO_CHOICE(f32_maxpool, xnn_maxpool_config, xnn_init_f32_maxpool_config)
NO_CHOICE(f32_avgpool, xnn_avgpool_config, xnn_init_f32_avgpool_config)
NO_CHOICE(f32_pavgpool, xnn_pavgpool_config, xnn_init_f32_pavgpool_config)
NO_CHOICE(f32_ibilinear, xnn_ibilinear_config, xnn_init_f32_ibilinear_config)
NO_CHOICE(f32_exp, xnn_unary_elementwise_config, xnn_init_f32_exp_config)
CHOICE(
    f32_log, xnn_unary_elementwise_config, 1, xnn_init_f32_log_config, true,
    CHOOSE_UNARY(f32_log, xnnpack_sys_f32_vlog_ukernel__scalar))
NO_CHOICE(f32_rsqrt, xnn_unary_elementwise_config, xnn_init_f32_rsqrt_config)
NO_CHOICE(f32_sqrt, xnn_unary_elementwise_config, xnn_init_f32_sqrt_config)
NO_CHOICE(f32_range, xnn_reduce_config, xnn_init_f32_rminmax_config)
#endif

#define CHOOSE_FIRST_IS_ONE(name) f32_v##name##_configs[0].ropc_ukernel = xnnpack_sys_f32_vr##name##c_ukernel__vector
#if XNN_ARCH_X86_64
#define CHOOSE_SELECTION CHOOSE_FIRST_IS_ONE
#else
#define CHOOSE_SELECTION(name) \
  f32_v##name##_configs[0].op_ukernel = xnnpack_sys_f32_v##name##_ukernel__vector; \
  f32_v##name##_configs[0].opc_ukernel = xnnpack_sys_f32_v##name##c_ukernel__vector; \
  CHOOSE_FIRST_IS_ONE(name)
#endif

CHOICE(f32_vmax, xnn_binary_elementwise_config, 1, xnn_init_f32_vmax_config, true, CHOOSE_SELECTION(max))
CHOICE(f32_vmin, xnn_binary_elementwise_config, 1, xnn_init_f32_vmin_config, true, CHOOSE_SELECTION(min))

const struct xnn_gemm_config* xnnpack_sys_f32_gemm_config(void) {
  return has_no_avx() ? xnnpack_sys_f32_pairs_gemm_config() : xnnpack_sys_f32_wide_gemm_config();
}

const struct xnn_gemm_config* xnnpack_sys_matrix_f32_gemm_config(void) {
  return has_no_avx() ? xnnpack_sys_f32_pairs_gemm_config() : xnnpack_sys_f32_rows_gemm_config();
}

xnn_packw_gemm_gio_ukernel_fn xnnpack_sys_matrix_f32_pack_gio(void) {
#if XNN_ARCH_X86_64
  if (has_no_avx()) {
    return (xnn_packw_gemm_gio_ukernel_fn) xnnpack_sys_pack_f32_pairs_gio;
  }
#endif
  return (xnn_packw_gemm_gio_ukernel_fn) xnn_pack_f32_gemm_gio_w;
}

const struct xnn_gemm_config* xnnpack_sys_fully_connected_f32_gemm_config(size_t inputs, uint32_t* flags) {
  const bool are_sparse = xnnpack_sys_take_flag(flags, XNNPACK_SYS_SPARSE_WEIGHTS);
  const struct xnn_gemm_config* sparse = are_sparse ? xnnpack_sys_f32_sparse_gemm_config_for(inputs) : NULL;
  if (sparse != NULL) {
    return sparse;
  }
  const bool are_halves = xnnpack_sys_take_flag(flags, XNNPACK_SYS_HALF_WEIGHTS);
  return are_halves && !has_no_avx() ? xnnpack_sys_f32_f16w_gemm_config() : xnnpack_sys_matrix_f32_gemm_config();
}

static xnn_rdsum_ukernel_fn f32_mean_ukernel(void) {
#if AVX512F
  if (has_avx512f()) {
    return xnnpack_sys_f32_rdsum_ukernel__avx512f;
  }
#endif
#if XNN_ARCH_X86_64
  if (has_avx()) {
    return xnnpack_sys_f32_rdsum_ukernel__avx;
  }
#endif
  return xnnpack_sys_f32_rdsum_ukernel__scalar;
}

CHOICE(
    f32_mean, xnn_reduce_config, 1, xnn_init_f32_rdsum_config, true,
    f32_mean_configs[0].rd_ukernel = f32_mean_ukernel())

// No convolution chooses a configuration of zeros. The second are for layers whose neighbouring outputs share few inputs or none.
static struct xnn_dwconv_config f32_depthwise_configs[XNNPACK_SYS_F32_DEPTHWISE_CONFIGS];
static struct xnn_dwconv_config f32_separate_depthwise_configs[XNNPACK_SYS_F32_DEPTHWISE_CONFIGS];

XNN_INIT_ONCE_GUARD(f32_depthwise);

#if XNN_ARCH_X86_64 || XNN_ARCH_ARM64
static void add_large_depthwise(size_t i, uint8_t weights, xnn_dwconv_unipass_ukernel_fn microkernel) {
  f32_depthwise_configs[XNNPACKS_F32_DEPTHWISE_CONFIGS + i] = (struct xnn_dwconv_config) {
      .minmax.unipass = microkernel,
      .init.f32 = xnn_init_f32_minmax_scalar_params,
      .channel_tile = DEPTHWISE_LANES,
      .channel_subtile = DEPTHWISE_LANES,
      .channel_round = 1,
      .primary_tile = weights,
  };
}

#define LARGE_DEPTHWISE(i, weights, isa) \
  add_large_depthwise( \
      i, weights, (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_dwconv_minmax_ukernel_##weights##p16c__##isa)

// Adds all LARGE_F32_DEPTHWISE_CONFIGS.
#define ADD_LARGE_DEPTHWISE(isa) \
  LARGE_DEPTHWISE(0, 49, isa); \
  LARGE_DEPTHWISE(1, 81, isa); \
  LARGE_DEPTHWISE(2, 121, isa); \
  LARGE_DEPTHWISE(3, 169, isa); \
  LARGE_DEPTHWISE(4, 225, isa)
#endif

static void choose_f32_depthwise(void) {
  memcpy(
      f32_depthwise_configs, xnn_init_f32_dwconv_config(),
      XNNPACKS_F32_DEPTHWISE_CONFIGS * sizeof(struct xnn_dwconv_config));
#if AVX512F
  if (has_avx512f()) {
    DEPTHWISE(f32, avx512f, XNNPACKS_F32_DEPTHWISE_CONFIGS);
    ADD_LARGE_DEPTHWISE(avx512f);
    return;
  }
#endif
#if XNN_ARCH_X86_64
  if (has_avx2()) {
    DEPTHWISE(f32, avx2, XNNPACKS_F32_DEPTHWISE_CONFIGS);
    ADD_LARGE_DEPTHWISE(avx2);
  } else if (has_avx()) {
    if (!has_fma()) {
      DEPTHWISE(f32, avx, XNNPACKS_F32_DEPTHWISE_CONFIGS);
    }
    ADD_LARGE_DEPTHWISE(avx);
  } else if (has_sse41()) {
    DEPTHWISE(f32, sse41, XNNPACKS_F32_DEPTHWISE_CONFIGS);
    ADD_LARGE_DEPTHWISE(sse41);
  }
#elif XNN_ARCH_ARM64
  ADD_LARGE_DEPTHWISE(neon);
#endif
}

#if XNN_ARCH_X86_64
// XNNPACK's microkernel takes as long for up to 9 weights.
static void choose_f32_separate_depthwise_sse41(void) {
  const struct xnn_dwconv_config* original = xnn_init_f32_dwconv_config();
  for (size_t i = 0; i < XNNPACKS_F32_DEPTHWISE_CONFIGS; i++) {
    struct xnn_dwconv_config* config = &f32_separate_depthwise_configs[i];
    if (config->primary_tile == 25) {
      config->minmax.unipass =
          (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_f32_separate_dwconv_minmax_ukernel_25p16c__sse41;
    } else {
      *config = original[i];
    }
  }
}

static void choose_f32_separate_depthwise(void) {
#if AVX512F
  if (has_avx512f()) {
    DEPTHWISE(f32_separate, avx512f, XNNPACKS_F32_DEPTHWISE_CONFIGS);
    return;
  }
#endif
  if (has_avx2()) {
    DEPTHWISE(f32_separate, avx2, XNNPACKS_F32_DEPTHWISE_CONFIGS);
  } else if (has_avx() && !has_fma()) {
    DEPTHWISE(f32_separate, avx, XNNPACKS_F32_DEPTHWISE_CONFIGS);
  } else if (has_no_avx()) {
    choose_f32_separate_depthwise_sse41();
  }
}
#endif

static void init_f32_depthwise_config(void) {
  choose_f32_depthwise();
  memcpy(f32_separate_depthwise_configs, f32_depthwise_configs, sizeof(f32_depthwise_configs));
#if XNN_ARCH_X86_64
  choose_f32_separate_depthwise();
#endif
}

const struct xnn_dwconv_config* xnnpack_sys_f32_depthwise_config(size_t stride, size_t dilation) {
  if (xnn_init_f32_dwconv_config() == NULL) {
    return NULL;
  }
  XNN_INIT_ONCE(f32_depthwise);
  // SSE4.1 has too few registers to gain from columns that outputs share with a stride.
  const size_t sharing_stride = has_no_avx() ? 1 : 2;
  return dilation == 1 && stride <= sharing_stride ? f32_depthwise_configs : f32_separate_depthwise_configs;
}
