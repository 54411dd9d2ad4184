// The process's pool of threads, which share the work of an operator. `pthreadpool.c` implements
// pthreadpool's interface with it.

#ifndef XNNPACK_SYS_POOL_H
#define XNNPACK_SYS_POOL_H

#include <stddef.h>
#include <stdint.h>

// The handle that `pthreadpool_create` returns: permission to use up to `threads` threads of the
// pool, including the caller.
struct pthreadpool {
  uint32_t threads;
};

// Computes the item `index` of a call. `thread` is the number of the computing thread, below the
// number of threads. Threads that compute at the same time have different numbers.
typedef void (*pool_task)(const void* call, size_t index, uint32_t thread);

// Calls `task` for each index below `count`, and returns when all calls have returned. Of
// pthreadpool's `flags`, only `PTHREADPOOL_FLAG_DISABLE_DENORMALS` has an effect.
void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags);

#endif
