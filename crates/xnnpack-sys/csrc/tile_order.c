// The order in which the tiles of a matrix product are computed.
//
// XNNPACK gives each tile of rows all output channels before it goes on to the next rows, so that
// weights which do not fit into the second-level cache are fetched anew from beyond it for every few
// rows. This file stands between XNNPACK and pthreadpool: products whose weights are too large for that
// take as many output channels as fit, and all rows with these before the next ones. Each
// output is computed by the same microkernel from the same operands, so that results stay the same.

#include <stddef.h>
#include <stdint.h>

#include <cpuinfo.h>
#include <pthreadpool.h>

#include "indirection.h"
#include "xnnpack/common.h"
#include "xnnpack/compute.h"
#include "xnnpack/math.h"

void xnnpack_sys_parallelize_2d_tile_2d(
    pthreadpool_t threadpool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t rows,
    size_t channels, size_t tile_rows, size_t tile_channels, uint32_t flags);

// What to keep free of the cache, as a divisor: rows and outputs pass through it too.
#define SHARE 2
#define DEFAULT_CACHE_BYTES (512 * 1024)

struct weights {
  // Bytes of one output channel, and channels that a microkernel computes at once.
  size_t stride;
  size_t nr;
};

struct swapped {
  pthreadpool_task_2d_tile_2d_t task;
  void* context;
};

static void compute_swapped(
    const struct swapped* swapped, size_t channel, size_t row, size_t channels, size_t rows)
{
  swapped->task(swapped->context, row, channel, rows, channels);
}

static struct weights weights_of(pthreadpool_task_2d_tile_2d_t task, const void* context) {
  if (task == (pthreadpool_task_2d_tile_2d_t) xnn_compute_gemm ||
      task == (pthreadpool_task_2d_tile_2d_t) xnn_compute_dqgemm) {
    const struct gemm_context* gemm = context;
    return (struct weights) {gemm->w_stride, gemm->cn_stride >> gemm->log2_csize};
  }
  if (task == (pthreadpool_task_2d_tile_2d_t) xnn_compute_igemm ||
      task == (pthreadpool_task_2d_tile_2d_t) xnn_compute_dqigemm ||
      task == (pthreadpool_task_2d_tile_2d_t) xnnpack_sys_compute_igemm ||
      task == (pthreadpool_task_2d_tile_2d_t) xnnpack_sys_compute_dqigemm) {
    const struct igemm_context* igemm = context;
    return (struct weights) {igemm->w_stride, igemm->cn_stride >> igemm->log2_csize};
  }
  return (struct weights) {0, 0};
}

static size_t cache_bytes(void) {
  const struct cpuinfo_cache* cache = cpuinfo_get_l2_caches();
  return cache != NULL && cache->size != 0 ? cache->size : DEFAULT_CACHE_BYTES;
}

void xnnpack_sys_parallelize_2d_tile_2d(
    pthreadpool_t threadpool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t rows,
    size_t channels, size_t tile_rows, size_t tile_channels, uint32_t flags)
{
  const struct weights weights = weights_of(task, context);
  const size_t budget = cache_bytes() / SHARE;
  if (weights.nr == 0 || rows <= tile_rows || weights.stride * channels <= budget) {
    pthreadpool_parallelize_2d_tile_2d(
        threadpool, task, context, rows, channels, tile_rows, tile_channels, flags);
    return;
  }
  const size_t fitting = max(budget / weights.stride / weights.nr, 1) * weights.nr;
  struct swapped swapped = {task, context};
  pthreadpool_parallelize_2d_tile_2d(
      threadpool, (pthreadpool_task_2d_tile_2d_t) compute_swapped, &swapped, channels, rows,
      min(tile_channels, fitting), tile_rows, flags);
}
