// Shared by the files that choose microkernels (`operators.h`): instruction sets, and copies of XNNPACK's configurations with
// microkernels of this crate.
//
// | operation                    | type          | instruction sets  | tile         | packing          | chosen in                   |
// |------------------------------|---------------|-------------------|--------------|------------------|-----------------------------|
// | products, convolutions       | f32           | AVX512F           | 7x32         | XNNPACK          | f32_config.c                |
// | the same, few channels       | f32           | AVX512F           | 8x16         | XNNPACK          | narrow_gemm_config.c        |
// | products, convolutions       | f32           | AVX, AVX2         | 6x16         | XNNPACK          | f32_config.c                |
// | convolutions, few channels   | f32           | AVX, AVX2         | 10x8         | XNNPACK          | narrow_gemm_config.c        |
// | the same, still fewer        | f32           | SSE4.1, AVX, AVX2 | 4x2c4, 4x2c8 | XNNPACK          | narrow_gemm_config.c        |
// | the same                     | f32           | AVX512F           | 8x2c16       | XNNPACK          | narrow_gemm_config.c        |
// | products, convolutions       | f32           | SSE4.1            | 4x4c2        | pack_f32.c       | f32_config.c                |
// | fully connected, products    | f32           | AVX512F           | 8x32, 4x32   | XNNPACK          | f32_config.c                |
// | fully connected              | f32, fp16 w.  | AVX512F           | 8x32, 4x32   | pack_f16w.c      | f32_config.c                |
// | the same, many weights of 0  | f32           | SSE4.1-AVX2, NEON | 32x1         | pack_f32_sparse.c| f32_sparse_config.c         |
// | products, convolutions       | f32           | SME               | 2 x 2 vectors| pack_f32_sme.c   | f32_config.c                |
// | products, convolutions       | qu8, qs8      | VNNI, VBMI        | 7x32c4       | pack_q8.c        | q8_gemm_config.c            |
// | the same                     | qu8, qs8      | and AMX           | 32x32c4      | pack_q8.c        | q8_gemm_config.c            |
// | fully connected              | qd8 qc8w      | VNNI, GFNI        | 8, 4x32c4    | pack_q8.c        | qd8_config.c                |
// | the same, many rows          | qd8 qc4w      | and AMX           | 32x32c4      | XNNPACK          | qd8_config.c                |
// | fully connected              | qd8 qb4w      | VNNI, GFNI        | 6x32c4       | XNNPACK          | qd8_config.c                |
// | fully connected              | qd8 qc4w, qb4w| SSE4.1            | 4x8c4        | XNNPACK          | q4_config.c                 |
// | the same                     | qd8 qc4w, qb4w| AVX2, AVX-VNNI    | 4x16c4       | XNNPACK          | q4_config.c                 |
// | the same                     | qd8 qc4w, qb4w| AVX512BW, VNNI    | 8x32c4       | XNNPACK          | q4_config.c                 |
// | convolutions                 | qd8, qdu8     | VNNI, GFNI        | 6x32c8       | pack_qd8.c       | qd8_config.c                |
// | the same                     | qd8 qc8w      | and AMX           | 32x32c4      | pack_q8.c        | qd8_config.c                |
// | products, convolutions       | qs8, qu8      | SSE4.1, AVX       | 4x8c4        | XNNPACK, sorted  | q8_bytes_config.c           |
// | the same                     | qs8, qu8      | AVX2, AVX-VNNI    | 4x16c4       | XNNPACK, sorted  | q8_bytes_config.c           |
// | the same                     | qs8, qu8      | AVX512BW          | 8x32c4       | XNNPACK, sorted  | q8_bytes_config.c           |
// | convolutions, full connection| qd8           | as these          | as these     | XNNPACK, sorted  | q8_bytes_config.c           |
// | depthwise convolutions       | qs8, qu8, qd8 | SSE4.1 to AVX512  | 9p16c, 25p16c| XNNPACK          | q8_depthwise_, qd8_config.c |
// | depthwise convolutions       | f32           | SSE4.1 to AVX512F | 9 to 225p16c | XNNPACK          | f32_config.c                |
// | the same, large kernels      | f32           | NEON              | 49 to 225p16c| XNNPACK          | f32_config.c                |
// | the same, large kernels      | qs8, qu8      | as these two      | 49 to 225p16c| XNNPACK          | q8_large_depthwise_config.c |
// | depthwise convolutions       | qs8, qu8, qd8 | VNNI, VBMI        | 9p16c, 25p16c| XNNPACK          | q8_depthwise_, qd8_config.c |
// | products, convolutions       | qu8, qd8      | NEON              | 4x16c2       | XNNPACK, biases  | q8_neon_config.c            |
// | transposed convolutions      | qu8           | NEON              | 4x16         | XNNPACK          | q8_neon_config.c            |
// | all of these                 | qu8, qd8      | and dot products  | 4x16c4       | XNNPACK          | q8_neon_config.c            |
// | products, convolutions       | qs8, qu8, qd8 | and i8mm          | 6x16c8       | XNNPACK          | q8_neon_config.c            |
// | the same                     | qs8, qd8      | SME               | 2 vec. x 16c4| XNNPACK          | q8_neon_config.c            |
// | the same, many inputs        | qs8, qu8, qd8 | NEON              | 3x16c16      | XNNPACK, biases  | q8_neon_config.c            |
// | depthwise convolutions       | qs8, qu8, qd8 | NEON              | 9p16c, 25p16c| XNNPACK          | q8_depthwise_, qd8_config.c |
// | products, convolutions       | qu8           | WebAssembly, SIMD | 4x8c2        | XNNPACK          | q8_bytes_config.c           |
// | depthwise convolutions       | qu8           | WebAssembly, SIMD | 9p8c, 25p8c  | XNNPACK          | q8_depthwise_config.c       |

#ifndef XNNPACK_SYS_CONFIG_H
#define XNNPACK_SYS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "config/operators.h"
#include "ukernels/depthwise.h"
#include "ukernels/sme.h"
#include "xnnpack/common.h"
#include "xnnpack/config.h"
#include "xnnpack/hardware-config.h"
#include "xnnpack/init-once.h"

#define AVX512F (XNN_ARCH_X86_64 && XNN_ENABLE_AVX512F)
#define AVX512SKX (XNN_ARCH_X86_64 && XNN_ENABLE_AVX512SKX)
#define AVX512VNNI (AVX512F && XNN_ENABLE_AVX512VNNI && XNN_ENABLE_AVX512VBMI)
#define AVX512VNNIGFNI (AVX512VNNI && XNN_ENABLE_AVX512VNNIGFNI)
#define AMX (AVX512VNNI && XNN_ENABLE_OWN_AMX)
#define SME (XNN_ARCH_ARM64 && XNN_ENABLE_OWN_SME)
// Microkernels for uint8 take parameters of `xnnpack_sys_init_fixed_point_qu8_params`.
#define FIXED_POINT_QU8 (XNN_ARCH_X86_64 || XNN_ARCH_ARM64 || XNN_ARCH_WASMSIMD)

// Microkernels as configurations have them, one for each kind of core.
#define GEMM_UKERNEL(name) xnn_init_hmp_gemm_ukernel((xnn_gemm_ukernel_fn) name)
#define IGEMM_UKERNEL(name) xnn_init_hmp_igemm_ukernel((xnn_igemm_ukernel_fn) name)
#define DQGEMM_UKERNEL(name) xnn_init_hmp_dqgemm_ukernel((xnn_dqgemm_ukernel_fn) name)
#define DQIGEMM_UKERNEL(name) xnn_init_hmp_dqigemm_ukernel((xnn_dqigemm_ukernel_fn) name)

// Makes a configuration one for a tile of `rows` and `channels`, without microkernels, with XNNPACK's functions for packing alone.
static XNN_INLINE void choose_tile(struct xnn_gemm_config* config, size_t rows, size_t channels, size_t log2_depth) {
  memset(&config->minmax, 0, sizeof(config->minmax));
  config->pack_weights_and_biases = NULL;
  config->packed_stride_weights_and_biases = NULL;
  config->mr = rows;
  config->nr = channels;
  config->log2_kr = log2_depth;
  config->log2_sr = 0;
}

// Sets the microkernels for fp32 products of a tile.
#define PRODUCTS(config, rows, channels, isa) \
  (config)->minmax.gemm[(rows) - 1] = GEMM_UKERNEL(xnnpack_sys_f32_gemm_minmax_ukernel_##rows##x##channels##__##isa); \
  (config)->minmax.igemm[(rows) - 1] = IGEMM_UKERNEL(xnnpack_sys_f32_igemm_minmax_ukernel_##rows##x##channels##__##isa)

// Defines a function that returns a copy of XNNPACK's `original` configuration, to which `change` was made, if this processor is
// `usable`, and the original otherwise.
#define CHOICE(name, type, count, original, usable, change) \
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
  const struct type* xnnpack_sys_##name##_config(void) { return original(); }

// Replaces the microkernels for 9 and for 25 weights. `lanes` is the number of channels whose weights are packed together.
static XNN_INLINE void choose_depthwise(
    struct xnn_dwconv_config* configs, size_t count, size_t lanes, xnn_dwconv_unipass_ukernel_fn of_9,
    xnn_dwconv_unipass_ukernel_fn of_25)
{
  for (size_t i = 0; i < count; i++) {
    struct xnn_dwconv_config* config = &configs[i];
    if (config->last_tile != 0 || (config->primary_tile != 9 && config->primary_tile != 25)) {
      continue;
    }
    config->minmax.unipass = config->primary_tile == 9 ? of_9 : of_25;
    config->linear.unipass = NULL;
    config->channel_tile = (uint8_t) lanes;
    config->channel_subtile = (uint8_t) lanes;
    config->channel_round = 1;
  }
}

#define DEPTHWISE(type, set, count) DEPTHWISE_OF(type##_depthwise_configs, type, 16, set, count)
#define DEPTHWISE_OF(configs, type, lanes, set, count) \
  choose_depthwise( \
      configs, count, lanes, \
      (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_##type##_dwconv_minmax_ukernel_9p##lanes##c__##set, \
      (xnn_dwconv_unipass_ukernel_fn) xnnpack_sys_##type##_dwconv_minmax_ukernel_25p##lanes##c__##set)

#if XNN_ARCH_ARM64
static XNN_INLINE bool has_dot_products(void) {
#if XNN_ENABLE_ARM_DOTPROD
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_arm_neon_dot;
#else
  return false;
#endif
}

// The depthwise microkernel of this processor. `name` makes a function's name of a number of weights and an instruction set.
#if XNN_ENABLE_ARM_DOTPROD
#define ARM64_DEPTHWISE(name, taps) (has_dot_products() ? name(taps, neondot) : name(taps, neon))
#else
#define ARM64_DEPTHWISE(name, taps) name(taps, neon)
#endif

static XNN_INLINE bool has_i8mm(void) {
#if XNN_ENABLE_ARM_I8MM
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_arm_neon_i8mm;
#else
  return false;
#endif
}

static XNN_INLINE bool has_sme(void) { return xnnpack_sys_sme_bytes() != 0; }
#endif

#if XNN_ARCH_X86_64
static XNN_INLINE bool has_sse41(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_sse4_1;
}

static XNN_INLINE bool has_avx(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx;
}

static XNN_INLINE bool has_fma(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_fma3;
}

// All processors with AVX2 but a few of one vendor have FMA.
static XNN_INLINE bool has_avx2(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx2 && has_fma();
}
#endif

// Whether this crate's microkernels for 8-bit integers run where they are compiled.
static XNN_INLINE bool has_q8_microkernels(void) {
#if XNN_ARCH_X86_64
  return has_sse41();
#else
  return true;
#endif
}

#if AVX512F
static XNN_INLINE bool has_avx512f(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512f;
}
#else
static XNN_INLINE bool has_avx512f(void) { return false; }
#endif

#if AVX512F
#define WITH_AVX512F(microkernel, otherwise) (has_avx512f() ? microkernel : otherwise)
#else
#define WITH_AVX512F(microkernel, otherwise) otherwise
#endif

#if AVX512SKX
static XNN_INLINE bool has_avx512skx(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512skx;
}
#else
static XNN_INLINE bool has_avx512skx(void) { return false; }
#endif

#if AVX512SKX
#define WITH_AVX512SKX(microkernel, otherwise) (has_avx512skx() ? microkernel : otherwise)
#else
#define WITH_AVX512SKX(microkernel, otherwise) otherwise
#endif

// The microkernel `name` of the newest instruction set that the processor has: BASE_UKERNEL chooses from SSE4.1 and AVX2, X86_UKERNEL from
// SSE4.1, AVX, AVX2 and AVX512, and WIDE_UKERNEL from AVX2 and AVX512.
#define BASE_UKERNEL(name) (has_avx2() ? name##__avx2 : name##__sse41)
#define X86_UKERNEL(name) \
  WITH_AVX512SKX(name##__avx512skx, (has_avx2() ? name##__avx2 : has_avx() ? name##__avx : name##__sse41))
#define WIDE_UKERNEL(name) WITH_AVX512SKX(name##__avx512skx, name##__avx2)

#if XNN_ARCH_X86_64 && XNN_ENABLE_AVXVNNI
static XNN_INLINE bool has_avxvnni(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avxvnni;
}
#endif

#if AVX512VNNI
static XNN_INLINE bool has_avx512vnni(void) {
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  return hardware != NULL && hardware->use_x86_avx512vnni && hardware->use_x86_avx512vbmi;
}
#endif

#endif
