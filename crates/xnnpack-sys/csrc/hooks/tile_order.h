// The order in which the tiles of a matrix product are computed, see `tile_order.c`.

#ifndef XNNPACK_SYS_TILE_ORDER_H
#define XNNPACK_SYS_TILE_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include <pthreadpool.h>

// `pthreadpool_parallelize_2d_tile_2d` for rows and output channels.
void xnnpack_sys_parallelize_2d_tile_2d(
    pthreadpool_t threadpool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t rows,
    size_t channels, size_t tile_rows, size_t tile_channels, uint32_t flags);

#endif
