// The flag for denormals with which an operator runs, see `denormals.c`.

#ifndef XNNPACK_SYS_DENORMALS_H
#define XNNPACK_SYS_DENORMALS_H

#include <stdint.h>

#include <pthreadpool.h>

#include "hooks/flags.h"

// Returns pthreadpool's flag. On x86-64 the thread that calls XNNPACK switches denormals itself (`run.c`).
static inline uint32_t xnnpack_sys_denormals_flag(uint32_t operator_flags, pthreadpool_t threadpool) {
  if ((operator_flags & XNNPACK_SYS_KEEPS_DENORMALS) != 0) {
    return 0;
  }
#ifdef __SSE__
  if (threadpool == NULL || pthreadpool_get_threads_count(threadpool) <= 1) {
    return 0;
  }
#endif
  return PTHREADPOOL_FLAG_DISABLE_DENORMALS;
}

#endif
