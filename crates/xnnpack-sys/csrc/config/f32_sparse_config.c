// Microkernels for fully connected layers of floats with weights of which many are 0, see `ukernels/gemm_f32_sparse.h`.

#include "config/config.h"

#include "config/operators.h"
#include "ukernels/gemm_f32_sparse_api.h"
#include "xnnpack/math.h"

#if XNN_ARCH_X86_64 || XNN_ARCH_ARM64

#if XNN_ARCH_X86_64
// AVX512 multiplies all weights as fast, because it loads no more than two vectors in a cycle.
static bool skips_zeros(void) { return has_sse41() && !has_avx512f(); }

static struct xnn_hmp_gemm_ukernel microkernel(void) {
  return GEMM_UKERNEL(
      (has_avx2()  ? xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__avx2
       : has_avx() ? xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__avx
                   : xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__sse41));
}
#else
// Outer products multiply all weights as fast.
static bool skips_zeros(void) { return !has_sme(); }

static struct xnn_hmp_gemm_ukernel microkernel(void) {
  return GEMM_UKERNEL(xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__neon);
}
#endif

// Whether this tile is that of sparse weights: no other one has a single channel.
static bool is_tile(size_t nr, size_t kr) { return nr == 1 && kr == 1 && skips_zeros(); }

static void choose(struct xnn_gemm_config* config) {
  choose_tile(config, F32_SPARSE_ROWS, /*channels=*/1, /*log2_depth=*/0);
  memset(&config->relu, 0, sizeof(config->relu));
  memset(&config->linear, 0, sizeof(config->linear));
  config->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn) xnnpack_sys_pack_f32_sparse_goi;
  config->pack_gemm_gio = (xnn_packw_gemm_gio_ukernel_fn) xnnpack_sys_pack_f32_sparse_gio;
  for (size_t rows = 1; rows <= F32_SPARSE_ROWS; rows++) {
    config->minmax.gemm[rows - 1] = microkernel();
  }
}

CHOICE(f32_sparse_gemm, xnn_gemm_config, 1, xnn_init_f32_gemm_config, skips_zeros(), choose(f32_sparse_gemm_configs))

const struct xnn_gemm_config* xnnpack_sys_f32_sparse_gemm_config_for(size_t inputs) {
  return skips_zeros() && inputs <= F32_SPARSE_INPUTS ? xnnpack_sys_f32_sparse_gemm_config() : NULL;
}

size_t xnnpack_sys_places_of_channel(size_t nr, size_t kr, size_t depth) {
  return is_tile(nr, kr) ? f32_sparse_places(depth) : 0;
}

bool xnnpack_sys_are_all_places_sound(size_t nr, size_t kr, size_t channels, size_t depth, const void* packed) {
  return !is_tile(nr, kr) || xnnpack_sys_are_places_sound(channels, depth, packed);
}

uint32_t xnnpack_sys_rows_of_tile(uint32_t mr, uint32_t nr, size_t rows) {
  if (!is_tile(nr, 1)) {
    return mr;
  }
  const size_t tiles = divide_round_up(rows, F32_SPARSE_ROWS);
  return (uint32_t) min(round_up_po2(divide_round_up(rows, tiles), 8), F32_SPARSE_ROWS);
}

#else

const struct xnn_gemm_config* xnnpack_sys_f32_sparse_gemm_config_for(size_t inputs) { return NULL; }
size_t xnnpack_sys_places_of_channel(size_t nr, size_t kr, size_t depth) { return 0; }

bool xnnpack_sys_are_all_places_sound(size_t nr, size_t kr, size_t channels, size_t depth, const void* packed) {
  return true;
}

uint32_t xnnpack_sys_rows_of_tile(uint32_t mr, uint32_t nr, size_t rows) { return mr; }

#endif
