// Microkernels for rows quantized at run time with 4-bit weights, see `ukernels/gemm_q4_bytes.h`.

#include "config/config.h"

#include "config/operators.h"
#include "ukernels/gemm_q4_bytes_api.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/pack.h"

#if XNN_ARCH_X86_64

#define TILE(type, tile_rows, channels, of_1, of_rows) \
  choose_tile(config, tile_rows, channels, Q4_BYTES_LOG2_DEPTH); \
  config->planes = Q4_BYTES_PLANES; \
  config->minmax.dqgemm[0] = DQGEMM_UKERNEL(xnnpack_sys_qd8_f32_##type##_gemm_minmax_ukernel_##of_1); \
  config->minmax.dqgemm[(tile_rows) - 1] = DQGEMM_UKERNEL(xnnpack_sys_qd8_f32_##type##_gemm_minmax_ukernel_##of_rows)

// Builds without microkernels for an instruction set do not refer to them.
#if AVX512VNNI
#define CHOOSE_AVX512VNNI(type) \
  if (xnn_init_hardware_config()->use_x86_avx512vnni) { \
    TILE(type, Q4_AVX512_ROWS, Q4_AVX512_CHANNELS, 1x32c4__avx512vnni, 8x32c4__avx512vnni); \
    return; \
  }
#else
#define CHOOSE_AVX512VNNI(type)
#endif

#if AVX512SKX
#define CHOOSE_AVX512SKX(type) \
  if (has_avx512skx()) { \
    TILE(type, Q4_AVX512_ROWS, Q4_AVX512_CHANNELS, 1x32c4__avx512skx, 8x32c4__avx512skx); \
    return; \
  }
#else
#define CHOOSE_AVX512SKX(type)
#endif

#if XNN_ENABLE_AVXVNNI
#define CHOOSE_AVXVNNI(type) \
  if (has_avxvnni()) { \
    TILE(type, Q4_BYTES_ROWS, Q4_AVX2_CHANNELS, 1x16c4__avxvnni, 4x16c4__avxvnni); \
    return; \
  }
#else
#define CHOOSE_AVXVNNI(type)
#endif

#define CHOOSE(type) \
  static void choose_##type(struct xnn_gemm_config* config) { \
    CHOOSE_AVX512VNNI(type) \
    CHOOSE_AVX512SKX(type) \
    CHOOSE_AVXVNNI(type) \
    if (has_avx2()) { \
      TILE(type, Q4_BYTES_ROWS, Q4_AVX2_CHANNELS, 1x16c4__avx2, 4x16c4__avx2); \
      return; \
    } \
    TILE(type, Q4_BYTES_ROWS, Q4_SSE41_CHANNELS, 1x8c4__sse41, 4x8c4__sse41); \
  }

CHOOSE(qc4w)
CHOOSE(qb4w)

#define CHOOSE_QC4W \
  choose_qc4w(qd8_qc4w_configs); \
  qd8_qc4w_configs[0].pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnn_pack_qs8_qc4w_gemm_goi_w; \
  qd8_qc4w_configs[0].pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) xnn_pack_qs8_qc4w_gemm_gio_w

CHOICE(qd8_qc4w, xnn_gemm_config, 1, xnn_init_qd8_f32_qc4w_gemm_config, has_sse41(), CHOOSE_QC4W)
CHOICE(qd8_qb4w, xnn_gemm_config, 1, xnn_init_qd8_f32_qb4w_gemm_config, has_sse41(), choose_qb4w(qd8_qb4w_configs))

#else

NO_CHOICE(qd8_qc4w, xnn_gemm_config, xnn_init_qd8_f32_qc4w_gemm_config)
NO_CHOICE(qd8_qb4w, xnn_gemm_config, xnn_init_qd8_f32_qb4w_gemm_config)

#endif
