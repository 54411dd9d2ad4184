// A pool without threads computes each item once, in order, on the calling thread.

#include <pthreadpool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/threads/pool.h"

static void check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "failed: %s\n", what);
    abort();
  }
}

struct loop {
  size_t computed;
};

static void task(void* context, size_t thread, size_t item) {
  struct loop* loop = context;
  check(thread == 0, "thread number");
  check(item == loop->computed, "each item once, in order");
  loop->computed++;
}

static void run_loop(pthreadpool_t pool) {
  for (size_t items = 0; items < 100; items++) {
    struct loop loop = {0};
    pthreadpool_parallelize_1d_with_thread(pool, task, &loop, items, PTHREADPOOL_FLAG_DISABLE_DENORMALS);
    check(loop.computed == items, "as many items as there are");
  }
}

int main(void) {
  check(xnnpack_sys_pool_create(0, 1) == NULL, "no pool of no threads");
  pthreadpool_t pool = xnnpack_sys_pool_create(4, 4);
  check(pool != NULL && pthreadpool_get_threads_count(pool) == 1, "one thread");
  pthreadpool_t part = xnnpack_sys_pool_smaller(pool, 2);
  check(pthreadpool_get_threads_count(part) == 1, "one thread of a part");
  run_loop(pool);
  run_loop(part);
  run_loop(NULL);
  pthreadpool_destroy(pool);
  pthreadpool_destroy(NULL);
  return 0;
}
