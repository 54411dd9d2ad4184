// Microkernels for transpositions, see `operators.h`.

#include "config/config.h"

#include "config/operators.h"
#include "ukernels/copy_rows.h"
#include "ukernels/transpose_x8.h"

#if XNN_ARCH_X86_64

// Elements of a tile in each direction. Rows of the output are often a power of two apart, so that their lines evict each other from
// the first-level cache: with XNNPACK's tiles of 32, they are fetched again for the next tile.
enum { TILE = 128 };

static void choose_tiles(struct xnn_transpose_config* config) {
  config->x8.tile_size = TILE;
  config->x16.tile_size = TILE;
  config->x32.tile_size = TILE;
  if (has_avx2()) {
    config->x8.const_size_ukernel = (xnn_transposec_ukernel_fn) WIDE_UKERNEL(xnnpack_sys_x8_transposec_ukernel);
  }
}

#else
static void choose_tiles(struct xnn_transpose_config* config) { (void) config; }
#endif

static void choose_transpositions(struct xnn_transpose_config* config) {
  config->xx.variable_size_ukernel = xnnpack_sys_xx_transposev_ukernel;
  choose_tiles(config);
}

CHOICE(transpose, xnn_transpose_config, 1, xnn_init_transpose_config, true, choose_transpositions(transpose_configs))
