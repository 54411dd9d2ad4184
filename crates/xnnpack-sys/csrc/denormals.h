// Which operators compute with denormals, see `denormals.c`. Put before XNNPACK's `operator-run.c`.

#ifndef XNNPACK_SYS_DENORMALS_H
#define XNNPACK_SYS_DENORMALS_H

#include <stdint.h>

#include <pthreadpool.h>

#include "xnnpack.h"

// Among the flags of an operator: it computes with denormals.
#define XNNPACK_SYS_KEEPS_DENORMALS (UINT32_C(1) << 29)

// Among the flags of an operator: the one before it does not compute with denormals if this does, and the other way round.
#define XNNPACK_SYS_SWITCHES_DENORMALS (UINT32_C(1) << 28)

// Among the flags of an operator's data: the operator before it computes with denormals.
#define XNNPACK_SYS_FINDS_DENORMALS (UINT32_C(1) << 27)

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

// Gives those flags to operators of a runtime that was made of `subgraph`.
void xnnpack_sys_mark_denormals(xnn_subgraph_t subgraph, xnn_runtime_t runtime);

#endif
