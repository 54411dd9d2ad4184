// The threads that share the work of an operator: one pool for the process, behind pthreadpool's interface (`pthreadpool.c`).

#ifndef XNNPACK_SYS_POOL_H
#define XNNPACK_SYS_POOL_H

#include <stddef.h>
#include <stdint.h>

// What `pthreadpool_create` returns: permission to use up to `threads` threads of the process's pool, the caller's included.
struct pthreadpool {
  uint32_t threads;
};

// Computes the item `index` of a call. `thread` is below the number of threads, and no two threads have the same at once.
typedef void (*pool_task)(const void* call, uint32_t index, uint32_t thread);

// Calls `task` for each index below `count`, and returns when all calls have returned. `flags` are pthreadpool's.
void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags);

#endif
