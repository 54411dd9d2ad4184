// Handles of pools whose caller computes everything: of `single.c` and of `simulated.c`.

#include "alone.h"

#include <pthreadpool.h>
#include <stdlib.h>

#include "pool.h"

pthreadpool_t xnnpack_sys_pool_create(size_t threads, size_t processors) {
  (void) processors;
  struct pthreadpool* pool = threads != 0 ? malloc(sizeof(struct pthreadpool)) : NULL;
  if (pool != NULL) {
    *pool = (struct pthreadpool) {.threads = xnnpack_sys_pool_threads(), .processors = xnnpack_sys_pool_threads()};
  }
  return pool;
}

void xnnpack_sys_pool_start(const struct pthreadpool* pool) { (void) pool; }

pthreadpool_t xnnpack_sys_pool_smaller(pthreadpool_t pool, size_t threads) {
  (void) threads;
  return pool;
}

pthreadpool_t pthreadpool_create(size_t threads) { return xnnpack_sys_pool_create(threads, threads); }

size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
  (void) pool;
  return xnnpack_sys_pool_threads();
}

void pthreadpool_destroy(pthreadpool_t pool) { free(pool); }
