// The pool of systems without threads: the caller computes everything. Stands in for `pool.c`.

#include "pool.h"

#include <pthreadpool.h>

#include "alone.h"
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

uint32_t xnnpack_sys_pool_threads(void) { return 1; }
