// Forced in front of XNNPACK's `operator-run.c`, see `run.c`.

#ifndef XNNPACK_SYS_DENORMALS_H
#define XNNPACK_SYS_DENORMALS_H

#include <stdint.h>

#include <pthreadpool.h>

#ifdef __SSE__

// The flag with which operators are run: pthreadpool's where other threads compute, too.
static inline uint32_t xnnpack_sys_denormals_flag(pthreadpool_t threadpool) {
  return threadpool == NULL || pthreadpool_get_threads_count(threadpool) <= 1
      ? 0
      : PTHREADPOOL_FLAG_DISABLE_DENORMALS;
}

// `xnn_run_operator_with_index` names its argument so. The function above has been compiled by now.
#undef PTHREADPOOL_FLAG_DISABLE_DENORMALS
#define PTHREADPOOL_FLAG_DISABLE_DENORMALS xnnpack_sys_denormals_flag(threadpool)

#endif

#endif
