// Microkernels for 8-bit integers without AVX512-VNNI and VBMI: SSE4.1, AVX, AVX2, AVX-VNNI and AVX512, see `ukernels/gemm_q8_bytes.h`.
// Microkernels for WebAssembly are in `ukernels/qu8_wasmsimd.c`. `q8_neon_config.c` chooses those for ARM.

#include "config/config.h"

#include <stdint.h>

#include "config/operators.h"
#include "config/q8_bytes_config.h"
#include "config/q8_packing.h"
#include "packing/convolution.h"
#include "ukernels/gemm_q8_bytes_api.h"
#include "ukernels/qu8_wasmsimd.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/pack.h"

#if XNN_ARCH_X86_64

bool xnnpack_sys_uses_q8_bytes(void) {
#if AVX512VNNI
  return has_sse41() && !has_avx512vnni();
#else
  return has_sse41();
#endif
}

// XNNPACK's microkernels for AVX512-VNNI, which need no VBMI, give the same results as those of this crate for int8, and for rows
// quantized at run time.
static bool uses_qs8_bytes(void) {
  return xnnpack_sys_uses_q8_bytes() && !xnn_init_hardware_config()->use_x86_avx512vnni;
}

static bool is_tile(size_t nr, size_t kr) {
  return kr == Q8_BYTES_DEPTH && (nr == Q8_SSE41_CHANNELS || nr == Q8_AVX2_CHANNELS || nr == Q8_AVX512_CHANNELS);
}

size_t xnnpack_sys_order_of_channel(size_t nr, size_t kr, size_t depth) {
  return is_tile(nr, kr) && xnnpack_sys_uses_q8_bytes() ? xnnpack_sys_q8_order_size(nr, depth) / nr : 0;
}

// Functions for weights whose steps are sorted, with a tile of `nr` channels.
struct sorting {
  xnnpack_sys_sort_q8_fn* sort;
  xnnpack_sys_are_orders_sound_q8_fn* are_sound;
};

#define SORTING(isa) ((struct sorting) {xnnpack_sys_sort_q8_##isa, xnnpack_sys_are_orders_sound_q8_##isa})

static struct sorting sorting_for(size_t nr) {
#if XNN_ENABLE_AVX512SKX
  if (nr == Q8_AVX512_CHANNELS) {
    return SORTING(avx512skx);
  }
#endif
  if (nr == Q8_SSE41_CHANNELS) {
    return has_avx() ? SORTING(avx) : SORTING(sse41);
  }
#if XNN_ENABLE_AVXVNNI
  if (has_avxvnni()) {
    return SORTING(avxvnni);
  }
#endif
  return SORTING(avx2);
}

bool xnnpack_sys_are_orders_sound(size_t nr, size_t kr, size_t tiles, size_t depth, const void* packed, size_t stride) {
  const bool are_sorted = is_tile(nr, kr) && xnnpack_sys_uses_q8_bytes();
  return !are_sorted || sorting_for(nr).are_sound(tiles, depth, packed, stride);
}

static void sort(
    bool is_unsigned, size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, void* packed, size_t extra_bytes)
{
  sorting_for(nr).sort(is_unsigned, g, nc, ks, ks * round_up_po2(kc, kr), packed, extra_bytes);
}

#define SORT(type, is_unsigned) \
  static void sort_##type( \
      size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, void* packed, size_t extra_bytes, \
      const struct xnn_##type##_packing_params* params) \
  { \
    sort(is_unsigned, g, nc, ks, kc, nr, kr, packed, extra_bytes); \
  }

SORT(qs8, false)
SORT(qu8, true)
PACKING(qs8, int8_t, qs8_to_qu8, sort_qs8)
PACKING(qu8, uint8_t, qu8, sort_qu8)
PACKING_ROWS(qd8, int8_t, qs8, qs8, sort_qs8)

bool xnnpack_sys_pack_qu8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  if (!is_tile(nr, kr) || !xnnpack_sys_uses_q8_bytes()) {
    return false;
  }
  pack_qu8_goki(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  return true;
}

bool xnnpack_sys_pack_qd8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const float* scale, void* packed, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  if (!is_tile(nr, kr) || !xnnpack_sys_uses_q8_bytes()) {
    return false;
  }
  xnn_pack_qs8_conv_goki_w(g, nc, ks, kc, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  sort(/*is_unsigned=*/false, g, nc, ks, kc, nr, kr, packed, extra_bytes);
  return true;
}

void xnnpack_sys_pack_qu8_conv_kgo_w(
    size_t g, size_t nc, size_t ks, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  if (is_tile(nr, kr) && xnnpack_sys_uses_q8_bytes()) {
    pack_qu8_kgo(g, nc, ks, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  } else {
    xnn_pack_qu8_conv_kgo_w(g, nc, ks, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
  }
}

#define MICROKERNELS(config, type, rows, index, isa) \
  config->minmax.gemm[index] = GEMM_UKERNEL(xnnpack_sys_##type##_gemm_minmax_ukernel_##rows##c4__##isa); \
  config->minmax.igemm[index] = IGEMM_UKERNEL(xnnpack_sys_##type##_igemm_minmax_ukernel_##rows##c4__##isa)

#define TILE_OF_8(type, isa) \
  choose_tile(config, Q8_SSE41_ROWS, Q8_SSE41_CHANNELS, Q8_BYTES_LOG2_DEPTH); \
  MICROKERNELS(config, type, 1x8, 0, isa); \
  MICROKERNELS(config, type, 4x8, Q8_SSE41_ROWS - 1, isa)

#define TILE_OF_16(type, isa) \
  choose_tile(config, Q8_AVX2_ROWS, Q8_AVX2_CHANNELS, Q8_BYTES_LOG2_DEPTH); \
  MICROKERNELS(config, type, 1x16, 0, isa); \
  MICROKERNELS(config, type, 4x16, Q8_AVX2_ROWS - 1, isa)

#define TILE_OF_32(type, isa) \
  choose_tile(config, Q8_AVX512_ROWS, Q8_AVX512_CHANNELS, Q8_BYTES_LOG2_DEPTH); \
  MICROKERNELS(config, type, 1x32, 0, isa); \
  MICROKERNELS(config, type, 8x32, Q8_AVX512_ROWS - 1, isa)

#if XNN_ENABLE_AVX512SKX
#define CHOOSE_32(type) \
  if (has_avx512skx()) { \
    TILE_OF_32(type, avx512skx); \
    return; \
  }
#else
#define CHOOSE_32(type)
#endif

#if XNN_ENABLE_AVXVNNI
#define CHOOSE_16(type) \
  if (has_avxvnni()) { \
    TILE_OF_16(type, avxvnni); \
    return; \
  }
#else
#define CHOOSE_16(type)
#endif

// The widest tile of the processor.
#define CHOOSE_TILE(type) \
  static void choose_##type##_tile(struct xnn_gemm_config* config) { \
    CHOOSE_32(type) \
    CHOOSE_16(type) \
    if (has_avx2()) { \
      TILE_OF_16(type, avx2); \
    } else if (has_avx()) { \
      TILE_OF_8(type, avx); \
    } else { \
      TILE_OF_8(type, sse41); \
    } \
  }

#define CHOOSE(type) \
  static void choose_##type(struct xnn_gemm_config* config) { \
    config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_##type##_goi; \
    config->pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) pack_##type##_gio; \
    config->pack_igemm_goki = (xnn_pack_conv_goki_w_fn) pack_##type##_goki; \
    config->pack_igemm_kgo = (xnn_pack_conv_kgo_w_fn) pack_##type##_kgo; \
    choose_##type##_tile(config); \
  }

CHOOSE_TILE(qs8)
CHOOSE_TILE(qu8)
CHOOSE(qs8)
CHOOSE(qu8)

// The tile of AVX2, for few channels.
static void choose_few_qs8(struct xnn_gemm_config* config) {
  choose_qs8(config);
  CHOOSE_16(qs8)
  TILE_OF_16(qs8, avx2);
}

#define DYNAMIC_TILE(rows, index, isa) \
  config->minmax.dqgemm[index] = DQGEMM_UKERNEL(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_##rows##c4__##isa); \
  config->minmax.dqigemm[index] = \
      DQIGEMM_UKERNEL(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##rows##c4__##isa)

#define DYNAMIC_TILE_OF_8(isa) \
  choose_tile(config, Q8_SSE41_ROWS, Q8_SSE41_CHANNELS, Q8_BYTES_LOG2_DEPTH); \
  DYNAMIC_TILE(1x8, 0, isa); \
  DYNAMIC_TILE(4x8, Q8_SSE41_ROWS - 1, isa)

#define DYNAMIC_TILE_OF_16(isa) \
  choose_tile(config, Q8_AVX2_ROWS, Q8_AVX2_CHANNELS, Q8_BYTES_LOG2_DEPTH); \
  DYNAMIC_TILE(1x16, 0, isa); \
  DYNAMIC_TILE(4x16, Q8_AVX2_ROWS - 1, isa)

static void choose_qd8_tile(struct xnn_gemm_config* config, size_t most_channels) {
#if XNN_ENABLE_AVX512SKX
  if (has_avx512skx() && most_channels >= Q8_AVX512_CHANNELS) {
    choose_tile(config, Q8_AVX512_ROWS, Q8_AVX512_CHANNELS, Q8_BYTES_LOG2_DEPTH);
    DYNAMIC_TILE(1x32, 0, avx512skx);
    DYNAMIC_TILE(8x32, Q8_AVX512_ROWS - 1, avx512skx);
    return;
  }
#endif
#if XNN_ENABLE_AVXVNNI
  if (has_avxvnni()) {
    DYNAMIC_TILE_OF_16(avxvnni);
    return;
  }
#endif
  if (has_avx2()) {
    DYNAMIC_TILE_OF_16(avx2);
  } else if (has_avx()) {
    DYNAMIC_TILE_OF_8(avx);
  } else {
    DYNAMIC_TILE_OF_8(sse41);
  }
}

// Products of rows, and convolutions of images, quantized at run time, with a tile of at most so many channels. Weights of convolutions
// are packed by `xnnpack_sys_pack_qd8_bytes_goki`.
static void choose_qd8(struct xnn_gemm_config* config, size_t most_channels) {
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) pack_qd8_goi;
  config->pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) pack_qd8_gio;
  choose_qd8_tile(config, most_channels);
}

// Transposed convolutions: XNNPACK packs their weights.
static void choose_plain_qu8(struct xnn_gemm_config* config) {
  CHOOSE_32(plain_qu8)
  if (has_avx2()) {
    TILE_OF_16(plain_qu8, avx2);
  } else if (has_avx()) {
    TILE_OF_8(plain_qu8, avx);
  } else {
    TILE_OF_8(plain_qu8, sse41);
  }
}

CHOICE(
    qs8_bytes, xnn_gemm_config, 1, xnn_init_qs8_qc8w_gemm_config, uses_qs8_bytes(),
    choose_qs8(qs8_bytes_configs))
CHOICE(
    qs8_few_bytes, xnn_gemm_config, 1, xnn_init_qs8_qc8w_gemm_config, uses_qs8_bytes(),
    choose_few_qs8(qs8_few_bytes_configs))
CHOICE(
    qu8_bytes, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, xnnpack_sys_uses_q8_bytes(),
    choose_qu8(qu8_bytes_configs); qu8_bytes_configs[0].init.qu8 = xnnpack_sys_init_fixed_point_qu8_params)
CHOICE(
    qd8_bytes, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, xnnpack_sys_uses_q8_bytes(),
    choose_qd8(qd8_bytes_configs, Q8_AVX512_CHANNELS))
CHOICE(
    qd8_few_bytes, xnn_gemm_config, 1, xnn_init_qd8_f32_qc8w_gemm_config, xnnpack_sys_uses_q8_bytes(),
    choose_qd8(qd8_few_bytes_configs, Q8_AVX2_CHANNELS))
CHOICE(
    qu8_plain, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, xnnpack_sys_uses_q8_bytes(),
    choose_plain_qu8(qu8_plain_configs); qu8_plain_configs[0].init.qu8 = xnnpack_sys_init_fixed_point_qu8_params)

const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_config_for(size_t outputs) {
  return outputs <= Q8_AVX2_CHANNELS ? xnnpack_sys_qd8_few_bytes_config() : xnnpack_sys_qd8_bytes_config();
}

const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_rows_config(void) {
  return uses_qs8_bytes() ? xnnpack_sys_qd8_bytes_config() : xnn_init_qd8_f32_qc8w_gemm_config();
}

#else

bool xnnpack_sys_uses_q8_bytes(void) { return false; }
const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_rows_config(void) { return xnn_init_qd8_f32_qc8w_gemm_config(); }
const struct xnn_gemm_config* xnnpack_sys_qd8_bytes_config_for(size_t outputs) { return xnn_init_qd8_f32_qc8w_gemm_config(); }
size_t xnnpack_sys_order_of_channel(size_t nr, size_t kr, size_t depth) { return 0; }

bool xnnpack_sys_are_orders_sound(size_t nr, size_t kr, size_t tiles, size_t depth, const void* packed, size_t stride) {
  return true;
}

bool xnnpack_sys_pack_qd8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const float* scale, void* packed, size_t extra_bytes, const struct xnn_qs8_packing_params* params)
{
  return false;
}

#if !XNN_ARCH_ARM64

NO_CHOICE(qs8_bytes, xnn_gemm_config, xnn_init_qs8_qc8w_gemm_config)

bool xnnpack_sys_pack_qu8_bytes_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  return false;
}

void xnnpack_sys_pack_qu8_conv_kgo_w(
    size_t g, size_t nc, size_t ks, size_t nr, size_t kr, size_t sr, const uint8_t* k, const int32_t* b,
    const void* scale, void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params)
{
  xnn_pack_qu8_conv_kgo_w(g, nc, ks, nr, kr, sr, k, b, scale, packed, extra_bytes, params);
}

#if XNN_ARCH_WASMSIMD

static void choose_wasm(struct xnn_gemm_config* config) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->minmax.gemm[0] = GEMM_UKERNEL(xnnpack_sys_qu8_gemm_minmax_ukernel_1x8c2__wasmsimd);
  config->minmax.gemm[QU8_WASM_ROWS - 1] = GEMM_UKERNEL(xnnpack_sys_qu8_gemm_minmax_ukernel_4x8c2__wasmsimd);
  config->minmax.igemm[0] = IGEMM_UKERNEL(xnnpack_sys_qu8_igemm_minmax_ukernel_1x8c2__wasmsimd);
  config->minmax.igemm[QU8_WASM_ROWS - 1] = IGEMM_UKERNEL(xnnpack_sys_qu8_igemm_minmax_ukernel_4x8c2__wasmsimd);
  config->init.qu8 = xnnpack_sys_init_fixed_point_qu8_params;
  config->mr = QU8_WASM_ROWS;
  config->nr = QU8_WASM_CHANNELS;
  config->log2_kr = QU8_WASM_LOG2_DEPTH;
  config->log2_sr = 0;
}

CHOICE(qu8_bytes, xnn_gemm_config, 1, xnn_init_qu8_gemm_config, true, choose_wasm(qu8_bytes_configs))
NO_CHOICE(qd8_bytes, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qu8_plain, xnn_gemm_config, xnnpack_sys_qu8_bytes_config)

#else

NO_CHOICE(qu8_bytes, xnn_gemm_config, xnn_init_qu8_gemm_config)
NO_CHOICE(qd8_bytes, xnn_gemm_config, xnn_init_qd8_f32_qc8w_gemm_config)
NO_CHOICE(qu8_plain, xnn_gemm_config, xnn_init_qu8_gemm_config)

#endif
#endif
#endif
