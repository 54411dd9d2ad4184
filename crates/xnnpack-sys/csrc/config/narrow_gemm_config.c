// Microkernels for fp32 layers with few output channels.
//
// XNNPACK has one tile of 7 x 32 for AVX512: half of it is wasted on layers with 16 channels, and more than a third on those with
// 40. If the tile is wider than the layer, operators request a second configuration, which is for Arm alone for convolutions
// (`xnn_create_convolution2d_nhwc_f32`), and a tile of 4 x 2 for SSE for the others. This file has a tile of 8 x 16 instead, and one of
// 10 x 8 for convolutions with AVX and AVX2, where XNNPACK's is 16 channels wide. Convolutions add in the same order, so that their
// results are the same bit for bit; those of other layers may differ in the last bits. With still fewer channels, lanes of vectors are
// inputs (`gemm_f32_few.h`), and all results may differ so.

#include "config/config.h"

#include "ukernels/gemm_f32.h"
#include "xnnpack.h"
#include "xnnpack/common.h"
#include "xnnpack/gemm.h"
#include "xnnpack/hardware-config.h"
#include "xnnpack/igemm.h"
#include "xnnpack/init-once.h"
#include "xnnpack/math.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams-init.h"
#include "xnnpack/pack.h"
#include "xnnpack/packw.h"

#if XNN_ARCH_X86_64

static struct xnn_gemm_config narrow_config;

XNN_INIT_ONCE_GUARD(narrow);

static void init_narrow_config(void) {
  narrow_config.init.f32 = xnn_init_f32_minmax_scalar_params;
  narrow_config.pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) xnn_pack_f32_gemm_gio_w;
#if AVX512F
  if (has_avx512f()) {
    // Convolutions look for the microkernel one place behind the rows of the wide tile.
    enum { ROWS = 8 };
    PRODUCTS(&narrow_config, 1, 16, avx512f);
    narrow_config.minmax.gemm[ROWS - 1] = GEMM_UKERNEL(xnn_f32_gemm_minmax_ukernel_8x16__avx512f_broadcast);
    narrow_config.minmax.igemm[ROWS - 1] = IGEMM_UKERNEL(xnn_f32_igemm_minmax_ukernel_8x16__avx512f_broadcast);
    narrow_config.pack_gemm_goi =
        (xnn_packw_gemm_goi_ukernel_fn) xnn_x32_packw_gemm_goi_ukernel_x16__avx512f_u4_prfm;
    narrow_config.mr = ROWS;
    narrow_config.nr = 16;
    return;
  }
#endif
  if (has_avx2()) {
    PRODUCTS(&narrow_config, 1, 8, avx2);
    PRODUCTS(&narrow_config, 10, 8, avx2);
  } else {
    PRODUCTS(&narrow_config, 1, 8, avx);
    PRODUCTS(&narrow_config, 10, 8, avx);
  }
  narrow_config.pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnn_x32_packw_gemm_goi_ukernel_x8__avx_u4;
  narrow_config.mr = 10;
  narrow_config.nr = 8;
}

static struct xnn_gemm_config few_config;

XNN_INIT_ONCE_GUARD(few);

#define FEW_TILE(rows, step, log2_step, isa) \
  PRODUCTS(&few_config, 1, 2c##step, isa); \
  PRODUCTS(&few_config, rows, 2c##step, isa); \
  few_config.mr = rows; \
  few_config.log2_kr = log2_step

static void init_few_config(void) {
  few_config.init.f32 = xnn_init_f32_minmax_scalar_params;
  few_config.pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) xnn_pack_f32_gemm_gio_w;
  few_config.pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnn_pack_f32_gemm_goi_w;
  few_config.nr = F32_FEW_CHANNELS;
#if AVX512F
  if (has_avx512f()) {
    FEW_TILE(8, 16, 4, avx512f);
    return;
  }
#endif
  if (has_avx2()) {
    FEW_TILE(4, 8, 3, avx2);
  } else if (has_avx()) {
    FEW_TILE(4, 8, 3, avx);
  } else {
    FEW_TILE(4, 4, 2, sse41);
  }
}

// The configuration whose lanes are inputs, or NULL. It takes less time if it has two thirds of the products of vectors, and with AVX512F
// less than half: it loads more for each of them.
static const struct xnn_gemm_config* few_config_for(size_t inputs, size_t channels) {
  if (!has_sse41()) {
    return NULL;
  }
  XNN_INIT_ONCE(few);
  const size_t steps = divide_round_up(inputs, (size_t) 1 << few_config.log2_kr);
  const size_t products = steps * channels;
  return (has_avx512f() ? 2 * products < inputs : 3 * products <= 2 * inputs) ? &few_config : NULL;
}

#else

static const struct xnn_gemm_config* few_config_for(size_t inputs, size_t channels) {
  (void) inputs, (void) channels;
  return NULL;
}

#endif

// The configuration for layers for which XNNPACK has a tile of 4 x 2 for SSE, or NULL. That tile is as fast without AVX, and slower for
// any shape with it.
static const struct xnn_gemm_config* few_config_with_avx_for(size_t inputs, size_t channels) {
#if XNN_ARCH_X86_64
  if (!has_avx()) {
    return NULL;
  }
  if (!has_avx512f()) {
    XNN_INIT_ONCE(few);
    return &few_config;
  }
#endif
  return few_config_for(inputs, channels);
}

const struct xnn_gemm_config* xnnpack_sys_narrow_conv_f32_gemm_config(void) {
#if XNN_ARCH_X86_64
  if (has_avx2() || (has_avx() && !has_fma())) {
    XNN_INIT_ONCE(narrow);
    return &narrow_config;
  }
#endif
  return xnn_init_f32_gemm_nr2_config();
}

const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config(void) {
#if SME
  // One vector of channels is computed where there are no more.
  if (has_sme()) {
    return xnnpack_sys_f32_wide_gemm_config();
  }
#endif
  return has_avx512f() ? xnnpack_sys_narrow_conv_f32_gemm_config() : xnn_init_f32_gemm_nr2_config();
}

// XNNPACK looks for a microkernel one place behind the rows of the wide tile, and has none there itself. So its convolutions
// compute eight channels where there are one or two.
bool xnnpack_sys_takes_narrow_tile(
    const struct xnn_gemm_config* narrow, const struct xnn_gemm_config* wide, size_t channels)
{
  if (wide->nr <= narrow->nr) {
    return false;
  }
  const bool is_behind = wide->mr < XNN_MAX_MR && narrow->minmax.igemm[wide->mr].function[XNN_UARCH_DEFAULT] != NULL;
  const bool is_wide_enough =
      channels <= narrow->nr && narrow->minmax.igemm[narrow->mr - 1].function[XNN_UARCH_DEFAULT] != NULL;
  return is_behind || is_wide_enough;
}

// Up to this many narrow tiles they are faster if the last wide one would be half empty. Two loads per cycle limit them to eight
// ninths of the speed of two multipliers: with more channels they save less than they cost. With AVX512F and nine tiles they save what
// they cost there, and a tenth of the time on processors that multiply 512 bits in two halves.
#define MOST_TILES (has_avx512f() ? 9 : 7)

// The configuration for convolutions with many channels, given the number of inputs at a position.
static const struct xnn_gemm_config* wide_config_for(size_t inputs, size_t channels) {
  const struct xnn_gemm_config* wide = xnnpack_sys_f32_gemm_config();
  if (wide == NULL || inputs >= F32_GEMM_STEP) {
    return wide;
  }
#if XNN_ARCH_ARM64
  return xnnpack_sys_f32_joined_gemm_config();
#elif XNN_ARCH_X86_64
  if (has_avx512f() || !has_avx()) {
    // Microkernels for AVX512F and for SSE4.1 take several inputs in a step.
    return xnn_init_f32_gemm_config();
  }
  // Copies of more inputs, and for fewer tiles, take as long as they save.
  return inputs == 1 && channels > wide->nr ? xnnpack_sys_f32_joined_gemm_config() : wide;
#else
  return wide;
#endif
}

const struct xnn_gemm_config* xnnpack_sys_conv_f32_gemm_config_for(size_t inputs, size_t channels) {
  const struct xnn_gemm_config* wide = wide_config_for(inputs, channels);
  const struct xnn_gemm_config* few = few_config_for(inputs, channels);
  if (few != NULL) {
    return few;
  }
#if XNN_ARCH_X86_64
  const struct xnn_gemm_config* narrow = xnnpack_sys_narrow_conv_f32_gemm_config();
  if (wide == NULL || narrow != &narrow_config) {
    return wide;
  }
  // With fewer channels than the wide tile XNNPACK requests the other configuration itself.
  const bool is_half_empty = (channels - 1) % wide->nr < narrow->nr;
  if (channels > wide->nr && channels <= MOST_TILES * narrow->nr && is_half_empty) {
    return narrow;
  }
#endif
  return wide;
}

// The fewest channels for which a tile of 16 is not slower than XNNPACK's of 2.
#define MIN_CHANNELS 8

const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config_for(size_t inputs, size_t channels) {
  const struct xnn_gemm_config* few = few_config_with_avx_for(inputs, channels);
  if (few != NULL) {
    return few;
  }
  return channels < MIN_CHANNELS ? xnn_init_f32_gemm_nr2_config() : xnnpack_sys_narrow_f32_gemm_config();
}

// XNNPACK's tile of 2 takes four input channels at a time. With a stride, rows of outputs are shorter, which matters to a tile of 8.
const struct xnn_gemm_config* xnnpack_sys_transposed_f32_gemm_config_for(bool strided, size_t inputs, size_t outputs) {
  const struct xnn_gemm_config* few = few_config_with_avx_for(inputs, outputs);
  if (few != NULL) {
    return few;
  }
  const bool is_faster = outputs > (strided && inputs >= 64 ? 3 : 2) || inputs < 4;
  return is_faster ? xnnpack_sys_narrow_f32_gemm_config() : xnn_init_f32_gemm_nr2_config();
}
