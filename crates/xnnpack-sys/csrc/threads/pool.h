// The process's pool of threads, which share the work of an operator. `pthreadpool.c` implements
// pthreadpool's interface with it.

#ifndef XNNPACK_SYS_POOL_H
#define XNNPACK_SYS_POOL_H

#include <stddef.h>
#include <stdint.h>

// Permission to use up to `threads` threads of the pool, including the caller. Callers at the same
// time share `processors` processors.
struct pthreadpool {
  uint32_t threads;
  uint32_t processors;
};

// A pool is an array of this length: the first element has all threads, and element `i` has 2^i or
// all threads.
#define BUDGETS 11

// Creates a pool of `threads` threads. Workers start with the first job that has work for them, or before
// it, as many as callers at the same time can use on `processors` processors. Jobs have fewer threads if the
// system refuses to start one.
struct pthreadpool* xnnpack_sys_pool_create(size_t threads, size_t processors);

// Starts the pool's workers. They are ready sooner than if they start with the first job.
void xnnpack_sys_pool_start(const struct pthreadpool* pool);

// The part of a pool with `threads` threads, which is a power of two or the number of all threads.
// It lives as long as the pool.
struct pthreadpool* xnnpack_sys_pool_smaller(struct pthreadpool* pool, size_t threads);

// Computes the items of a call from `first` on, `count` of them, at least one. `thread` is the number of
// the computing thread, below the number of threads. Threads that compute at the same time have
// different numbers.
typedef void (*pool_task)(const void* call, size_t first, size_t count, uint32_t thread);

// Computes the items below `count`, and returns when all calls of `task` have returned. Of
// pthreadpool's `flags`, only `PTHREADPOOL_FLAG_DISABLE_DENORMALS` has an effect.
void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags);

#endif
