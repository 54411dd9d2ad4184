// The pool of systems without threads: the caller computes everything. Stands in for `pool.c`.

#include "pool.h"

#include <pthreadpool.h>
#include <stdlib.h>

#include "float_mode.h"

void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags)
{
  (void) handle;
  const int has_mode = (flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0;
  const float_mode before = has_mode ? disable_denormals() : 0;
  if (count != 0) {
    task(call, 0, count, 0);
  }
  if (has_mode) {
    restore_floats(before);
  }
}

pthreadpool_t xnnpack_sys_pool_create(size_t threads, size_t processors) {
  (void) processors;
  struct pthreadpool* pool = threads != 0 ? malloc(sizeof(struct pthreadpool)) : NULL;
  if (pool != NULL) {
    *pool = (struct pthreadpool) {.threads = 1, .processors = 1};
  }
  return pool;
}

pthreadpool_t xnnpack_sys_pool_smaller(pthreadpool_t pool, size_t threads) {
  (void) threads;
  return pool;
}

pthreadpool_t pthreadpool_create(size_t threads) { return xnnpack_sys_pool_create(threads, threads); }

size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
  (void) pool;
  return 1;
}

void pthreadpool_destroy(pthreadpool_t pool) { free(pool); }
