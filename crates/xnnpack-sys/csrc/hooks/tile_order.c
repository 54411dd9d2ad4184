// The order in which the tiles of a matrix product are computed.
//
// XNNPACK computes all output channels of a tile of rows before the next rows, so that weights which exceed the second-level cache
// are fetched again for every few rows. Here such products are computed for as many output channels as fit into the cache, and
// all rows, before the next channels. The same microkernel computes each output from the same operands, so that results are the
// same.
//
// Each thread computes tiles of neighbouring rows in turn: distributing tiles one by one takes a few per cent of a product's time.
// With AMX, registers then keep their shapes between tiles, too, and microkernels need not decide for each tile whether AMX is late
// (`gemm_q8.h`).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpuinfo.h>
#include <pthreadpool.h>

#include "ukernels/amx.h"
#include "ukernels/gemm_q8.h"
#include "hooks/indirection.h"
#include "hooks/tile_order.h"
#include "xnnpack/common.h"
#include "xnnpack/compute.h"
#include "xnnpack/math.h"

// Weights take one part in this many of the cache: rows and outputs pass through it, too.
#define SHARE 2
#define DEFAULT_CACHE_BYTES (512 * 1024)
// How often each thread fetches more tiles, so that the others do not wait for the last one.
#define TURNS 16

struct weights {
  // Bytes of an output channel, and channels that a microkernel computes at once.
  size_t stride;
  size_t nr;
};

struct product {
  pthreadpool_task_2d_tile_2d_t task;
  void* context;
  size_t tile_rows;
  bool amx_is_late;
};

static void compute_in_turn(const struct product* product, size_t row, size_t channel, size_t rows, size_t channels) {
  xnnpack_sys_amx_turn = (struct amx_turn) {.keeps_shapes = true, .is_late = product->amx_is_late};
  if (product->task == (pthreadpool_task_2d_tile_2d_t) xnnpack_sys_compute_igemm) {
    xnnpack_sys_compute_igemm_tiles(product->context, row, channel, rows, channels, product->tile_rows);
  } else {
    for (size_t at = 0; at < rows; at += product->tile_rows) {
      product->task(product->context, row + at, channel, min(product->tile_rows, rows - at), channels);
    }
  }
  xnnpack_sys_amx_turn = (struct amx_turn) {.keeps_shapes = false};
}

static void compute_swapped(
    const struct product* product, size_t channel, size_t row, size_t channels, size_t rows)
{
  product->task(product->context, row, channel, rows, channels);
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
#if XNN_ENABLE_CPUINFO
  const struct cpuinfo_cache* cache = cpuinfo_get_l2_caches();
  if (cache != NULL && cache->size != 0) {
    return cache->size;
  }
#endif
  return DEFAULT_CACHE_BYTES;
}

// Returns the rows that a thread computes in turn.
static size_t rows_in_turn(size_t threads, size_t rows, size_t channels, size_t tile_rows, size_t tile_channels) {
  if (threads <= 1) {
    return round_up(rows, tile_rows);
  }
  const size_t tiles = divide_round_up(rows, tile_rows) * divide_round_up(channels, tile_channels);
  return max(tiles / (threads * TURNS), 1) * tile_rows;
}

void xnnpack_sys_parallelize_2d_tile_2d(
    pthreadpool_t threadpool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t rows,
    size_t channels, size_t tile_rows, size_t tile_channels, uint32_t flags)
{
  const struct weights weights = weights_of(task, context);
  if (weights.nr == 0) {
    pthreadpool_parallelize_2d_tile_2d(
        threadpool, task, context, rows, channels, tile_rows, tile_channels, flags);
    return;
  }
  const size_t budget = cache_bytes() / SHARE;
  const bool is_large = rows > tile_rows && weights.stride * channels > budget;
  if (is_large) {
    const size_t fitting = max(budget / weights.stride / weights.nr, 1) * weights.nr;
    tile_channels = min(tile_channels, fitting);
  }
  const size_t threads = pthreadpool_get_threads_count(threadpool);
  struct product in_turn = {
      .task = task,
      .context = context,
      .tile_rows = tile_rows,
      .amx_is_late = xnnpack_sys_q8_amx_is_late(rows, weights.stride, channels / threads),
  };
  tile_rows = rows_in_turn(threads, rows, channels, tile_rows, tile_channels);
  task = (pthreadpool_task_2d_tile_2d_t) compute_in_turn;
  context = &in_turn;
  if (is_large) {
    struct product swapped = {.task = task, .context = context, .tile_rows = tile_rows};
    pthreadpool_parallelize_2d_tile_2d(
        threadpool, (pthreadpool_task_2d_tile_2d_t) compute_swapped, &swapped, channels, rows, tile_channels, tile_rows,
        flags);
  } else {
    pthreadpool_parallelize_2d_tile_2d(
        threadpool, task, context, rows, channels, tile_rows, tile_channels, flags);
  }
}
