// Which operators compute with denormals, see `denormals.c`. Put before XNNPACK's `operator-run.c`.

#ifndef XNNPACK_SYS_DENORMALS_H
#define XNNPACK_SYS_DENORMALS_H

#include <stdint.h>

#include <pthreadpool.h>

#include "xnnpack.h"

// Among the flags of an operator: denormals stay on while it runs.
#define XNNPACK_SYS_KEEPS_DENORMALS (UINT32_C(1) << 29)

// The flag with which an operator is run. On x86-64 the thread that calls XNNPACK has switched denormals off or on by itself
// (`run.c`).
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

// Gives that flag to operators of a runtime that was made of `subgraph`.
void xnnpack_sys_mark_denormals(xnn_subgraph_t subgraph, xnn_runtime_t runtime);

#endif
