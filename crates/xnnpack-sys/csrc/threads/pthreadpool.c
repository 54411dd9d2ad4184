// Implements pthreadpool's loops in one to six dimensions with `pool.h`, as far as XNNPACK and this
// project call them.
//
// The items of a loop are numbered with the last dimension innermost. An item of a tiled dimension
// is a tile. The position of the first of several items is derived from its number.

#include <pthreadpool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"

#define MAX_DIMS 6

struct dimension {
  size_t range;
  // Size of a tile; 1 if the dimension is not tiled.
  size_t tile;
  // Number of tiles.
  size_t tiles;
};

// Workers fetch what they read of it from the caller's cache: a loop of one or two dimensions has one or two lines.
struct loop {
  _Alignas(64) void (*function)(void);
  void* context;
  uint32_t uarch;
  struct dimension dims[MAX_DIMS];
};

// Position of an item, and the size of its tile within the range.
struct place {
  size_t at[MAX_DIMS];
  size_t size[MAX_DIMS];
};

// Quotient and remainder of small numbers take a fraction of the time in 32 bits.
static inline size_t divide(size_t item, size_t tiles, size_t* rest) {
  if ((item | tiles) <= UINT32_MAX) {
    *rest = (uint32_t) item % (uint32_t) tiles;
    return (uint32_t) item / (uint32_t) tiles;
  }
  *rest = item % tiles;
  return item / tiles;
}

// Number of tiles. Loops of small operators mostly have one tile in a dimension, or tiles of one item: they need no division.
static inline size_t tiles_of(size_t range, size_t tile) {
  if (range <= tile) {
    return range != 0;
  }
  if (tile == 1) {
    return range;
  }
  size_t rest;
  const size_t whole = divide(range, tile, &rest);
  return whole + (rest != 0);
}

static inline size_t size_at(const struct loop* loop, uint32_t dim, size_t at) {
  const size_t rest = loop->dims[dim].range - at;
  return rest < loop->dims[dim].tile ? rest : loop->dims[dim].tile;
}

// `dims` is a constant wherever this and the next function are inlined, so that places are registers.
static inline struct place place_of(const struct loop* loop, uint32_t dims, size_t item) {
  struct place place;
  for (uint32_t dim = dims; dim-- > 0;) {
    size_t tile = item;
    if (loop->dims[dim].tiles == 1) {
      tile = 0;
    } else if (dim > 0) {
      item = divide(item, loop->dims[dim].tiles, &tile);
    }
    place.at[dim] = tile * loop->dims[dim].tile;
    place.size[dim] = size_at(loop, dim, place.at[dim]);
  }
  return place;
}

// Goes on to the next item, without divisions.
static inline void advance(const struct loop* loop, uint32_t dims, struct place* place) {
  for (uint32_t dim = dims; dim-- > 0;) {
    const size_t next = place->at[dim] + loop->dims[dim].tile;
    const size_t at = next < loop->dims[dim].range ? next : 0;
    place->at[dim] = at;
    place->size[dim] = size_at(loop, dim, at);
    if (at != 0) {
      return;
    }
  }
}

static void run(
    pthreadpool_t threadpool, pool_task task, struct loop* loop, const size_t* range, const size_t* tile, uint32_t dims,
    uint32_t flags)
{
  size_t items = 1;
  for (uint32_t dim = 0; dim < dims; dim++) {
    const size_t tiles = tiles_of(range[dim], tile[dim]);
    loop->dims[dim] = (struct dimension) {range[dim], tile[dim], tiles};
    items *= tiles;
  }
  xnnpack_sys_pool_run(threadpool, task, loop, items, flags);
}

// Whether the loop is one item, which needs no pool. The pool would take a tenth of the time of models
// with hundreds of small operators. A simulated pool measures these loops, too.
static inline bool is_one_item(const size_t* range, const size_t* tile, uint32_t dims, uint32_t flags) {
#ifdef XNNPACK_SYS_SIMULATE_THREADS
  bool is_one = false;
#else
  bool is_one = (flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) == 0;
#endif
  for (uint32_t dim = 0; dim < dims; dim++) {
    is_one = is_one && range[dim] != 0 && range[dim] <= tile[dim];
  }
  return is_one;
}

// Defines the function of one loop. The arguments are the loop's name, the type of its task, the
// parameters of the function, the initializers of `uarch`, `dims`, `range` and `tile`, and the
// arguments of the task.
#define LOOP(name, type, parameters, uarch_, dims_, ranges, tiles_, arguments)                                         \
  static void compute_##name(const void* call, size_t first, size_t count, uint32_t thread) {                          \
    const struct loop* loop = call;                                                                                    \
    struct place p = place_of(loop, dims_, first);                                                                     \
    (void) thread;                                                                                                     \
    for (;;) {                                                                                                         \
      ((type) loop->function) arguments;                                                                               \
      if (--count == 0) {                                                                                              \
        return;                                                                                                        \
      }                                                                                                                \
      advance(loop, dims_, &p);                                                                                        \
    }                                                                                                                  \
  }                                                                                                                    \
  void pthreadpool_parallelize_##name parameters {                                                                     \
    const size_t range[] = ranges, tile[] = tiles_;                                                                    \
    struct loop call;                                                                                                  \
    call.function = (void (*)(void)) function;                                                                         \
    call.context = context;                                                                                            \
    call.uarch = uarch_;                                                                                               \
    if (is_one_item(range, tile, dims_, flags)) {                                                                      \
      const struct loop* loop = &call;                                                                                 \
      const struct place p = {{0}, ranges};                                                                            \
      const uint32_t thread = 0;                                                                                       \
      (void) thread;                                                                                                   \
      function arguments;                                                                                              \
    } else {                                                                                                           \
      run(threadpool, compute_##name, &call, range, tile, dims_, flags);                                               \
    }                                                                                                                  \
  }

#define LIST(...) {__VA_ARGS__}

LOOP(
    1d, pthreadpool_task_1d_t,
    (pthreadpool_t threadpool, pthreadpool_task_1d_t function, void* context, size_t range_i, uint32_t flags),
    0, 1, LIST(range_i), LIST(1),
    (loop->context, p.at[0]))

LOOP(
    1d_with_thread, pthreadpool_task_1d_with_thread_t,
    (pthreadpool_t threadpool, pthreadpool_task_1d_with_thread_t function, void* context, size_t range_i, uint32_t flags),
    0, 1, LIST(range_i), LIST(1),
    (loop->context, thread, p.at[0]))

LOOP(
    1d_tile_1d, pthreadpool_task_1d_tile_1d_t,
    (pthreadpool_t threadpool, pthreadpool_task_1d_tile_1d_t function, void* context, size_t range_i, size_t tile_i, uint32_t flags),
    0, 1, LIST(range_i), LIST(tile_i),
    (loop->context, p.at[0], p.size[0]))

LOOP(
    2d, pthreadpool_task_2d_t,
    (pthreadpool_t threadpool, pthreadpool_task_2d_t function, void* context, size_t range_i, size_t range_j, uint32_t flags),
    0, 2, LIST(range_i, range_j), LIST(1, 1),
    (loop->context, p.at[0], p.at[1]))

LOOP(
    2d_with_thread, pthreadpool_task_2d_with_thread_t,
    (pthreadpool_t threadpool, pthreadpool_task_2d_with_thread_t function, void* context, size_t range_i, size_t range_j, uint32_t flags),
    0, 2, LIST(range_i, range_j), LIST(1, 1),
    (loop->context, thread, p.at[0], p.at[1]))

LOOP(
    2d_tile_1d, pthreadpool_task_2d_tile_1d_t,
    (pthreadpool_t threadpool, pthreadpool_task_2d_tile_1d_t function, void* context, size_t range_i, size_t range_j, size_t tile_j, uint32_t flags),
    0, 2, LIST(range_i, range_j), LIST(1, tile_j),
    (loop->context, p.at[0], p.at[1], p.size[1]))

LOOP(
    2d_tile_1d_with_uarch, pthreadpool_task_2d_tile_1d_with_id_t,
    (pthreadpool_t threadpool, pthreadpool_task_2d_tile_1d_with_id_t function, void* context, uint32_t uarch, uint32_t max_uarch, size_t range_i, size_t range_j, size_t tile_j, uint32_t flags),
    uarch, 2, LIST(range_i, range_j), LIST(1, tile_j),
    (loop->context, loop->uarch, p.at[0], p.at[1], p.size[1]))

LOOP(
    2d_tile_2d, pthreadpool_task_2d_tile_2d_t,
    (pthreadpool_t threadpool, pthreadpool_task_2d_tile_2d_t function, void* context, size_t range_i, size_t range_j, size_t tile_i, size_t tile_j, uint32_t flags),
    0, 2, LIST(range_i, range_j), LIST(tile_i, tile_j),
    (loop->context, p.at[0], p.at[1], p.size[0], p.size[1]))

LOOP(
    2d_tile_2d_with_uarch, pthreadpool_task_2d_tile_2d_with_id_t,
    (pthreadpool_t threadpool, pthreadpool_task_2d_tile_2d_with_id_t function, void* context, uint32_t uarch, uint32_t max_uarch, size_t range_i, size_t range_j, size_t tile_i, size_t tile_j, uint32_t flags),
    uarch, 2, LIST(range_i, range_j), LIST(tile_i, tile_j),
    (loop->context, loop->uarch, p.at[0], p.at[1], p.size[0], p.size[1]))

LOOP(
    3d, pthreadpool_task_3d_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, uint32_t flags),
    0, 3, LIST(range_i, range_j, range_k), LIST(1, 1, 1),
    (loop->context, p.at[0], p.at[1], p.at[2]))

LOOP(
    3d_tile_1d, pthreadpool_task_3d_tile_1d_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_tile_1d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t tile_k, uint32_t flags),
    0, 3, LIST(range_i, range_j, range_k), LIST(1, 1, tile_k),
    (loop->context, p.at[0], p.at[1], p.at[2], p.size[2]))

LOOP(
    3d_tile_1d_with_thread, pthreadpool_task_3d_tile_1d_with_thread_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_tile_1d_with_thread_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t tile_k, uint32_t flags),
    0, 3, LIST(range_i, range_j, range_k), LIST(1, 1, tile_k),
    (loop->context, thread, p.at[0], p.at[1], p.at[2], p.size[2]))

LOOP(
    3d_tile_1d_with_uarch, pthreadpool_task_3d_tile_1d_with_id_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_tile_1d_with_id_t function, void* context, uint32_t uarch, uint32_t max_uarch, size_t range_i, size_t range_j, size_t range_k, size_t tile_k, uint32_t flags),
    uarch, 3, LIST(range_i, range_j, range_k), LIST(1, 1, tile_k),
    (loop->context, loop->uarch, p.at[0], p.at[1], p.at[2], p.size[2]))

LOOP(
    3d_tile_1d_with_uarch_with_thread, pthreadpool_task_3d_tile_1d_with_id_with_thread_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_tile_1d_with_id_with_thread_t function, void* context, uint32_t uarch, uint32_t max_uarch, size_t range_i, size_t range_j, size_t range_k, size_t tile_k, uint32_t flags),
    uarch, 3, LIST(range_i, range_j, range_k), LIST(1, 1, tile_k),
    (loop->context, loop->uarch, thread, p.at[0], p.at[1], p.at[2], p.size[2]))

LOOP(
    3d_tile_2d, pthreadpool_task_3d_tile_2d_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_tile_2d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t tile_j, size_t tile_k, uint32_t flags),
    0, 3, LIST(range_i, range_j, range_k), LIST(1, tile_j, tile_k),
    (loop->context, p.at[0], p.at[1], p.at[2], p.size[1], p.size[2]))

LOOP(
    3d_tile_2d_with_uarch, pthreadpool_task_3d_tile_2d_with_id_t,
    (pthreadpool_t threadpool, pthreadpool_task_3d_tile_2d_with_id_t function, void* context, uint32_t uarch, uint32_t max_uarch, size_t range_i, size_t range_j, size_t range_k, size_t tile_j, size_t tile_k, uint32_t flags),
    uarch, 3, LIST(range_i, range_j, range_k), LIST(1, tile_j, tile_k),
    (loop->context, loop->uarch, p.at[0], p.at[1], p.at[2], p.size[1], p.size[2]))

LOOP(
    4d, pthreadpool_task_4d_t,
    (pthreadpool_t threadpool, pthreadpool_task_4d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t range_l, uint32_t flags),
    0, 4, LIST(range_i, range_j, range_k, range_l), LIST(1, 1, 1, 1),
    (loop->context, p.at[0], p.at[1], p.at[2], p.at[3]))

LOOP(
    4d_tile_2d, pthreadpool_task_4d_tile_2d_t,
    (pthreadpool_t threadpool, pthreadpool_task_4d_tile_2d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t range_l, size_t tile_k, size_t tile_l, uint32_t flags),
    0, 4, LIST(range_i, range_j, range_k, range_l), LIST(1, 1, tile_k, tile_l),
    (loop->context, p.at[0], p.at[1], p.at[2], p.at[3], p.size[2], p.size[3]))

LOOP(
    4d_tile_2d_with_uarch, pthreadpool_task_4d_tile_2d_with_id_t,
    (pthreadpool_t threadpool, pthreadpool_task_4d_tile_2d_with_id_t function, void* context, uint32_t uarch, uint32_t max_uarch, size_t range_i, size_t range_j, size_t range_k, size_t range_l, size_t tile_k, size_t tile_l, uint32_t flags),
    uarch, 4, LIST(range_i, range_j, range_k, range_l), LIST(1, 1, tile_k, tile_l),
    (loop->context, loop->uarch, p.at[0], p.at[1], p.at[2], p.at[3], p.size[2], p.size[3]))

LOOP(
    5d, pthreadpool_task_5d_t,
    (pthreadpool_t threadpool, pthreadpool_task_5d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t range_l, size_t range_m, uint32_t flags),
    0, 5, LIST(range_i, range_j, range_k, range_l, range_m), LIST(1, 1, 1, 1, 1),
    (loop->context, p.at[0], p.at[1], p.at[2], p.at[3], p.at[4]))

LOOP(
    5d_tile_2d, pthreadpool_task_5d_tile_2d_t,
    (pthreadpool_t threadpool, pthreadpool_task_5d_tile_2d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t range_l, size_t range_m, size_t tile_l, size_t tile_m, uint32_t flags),
    0, 5, LIST(range_i, range_j, range_k, range_l, range_m), LIST(1, 1, 1, tile_l, tile_m),
    (loop->context, p.at[0], p.at[1], p.at[2], p.at[3], p.at[4], p.size[3], p.size[4]))

LOOP(
    6d_tile_2d, pthreadpool_task_6d_tile_2d_t,
    (pthreadpool_t threadpool, pthreadpool_task_6d_tile_2d_t function, void* context, size_t range_i, size_t range_j, size_t range_k, size_t range_l, size_t range_m, size_t range_n, size_t tile_m, size_t tile_n, uint32_t flags),
    0, 6, LIST(range_i, range_j, range_k, range_l, range_m, range_n), LIST(1, 1, 1, 1, tile_m, tile_n),
    (loop->context, p.at[0], p.at[1], p.at[2], p.at[3], p.at[4], p.at[5], p.size[4], p.size[5]))
