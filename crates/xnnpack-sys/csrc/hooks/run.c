// How a runtime runs: the threads of each operator, and whether it computes with denormals or at all.
//
// pthreadpool switches denormals off for every step of every operator. Reading and writing the processor's control register takes
// ten nanoseconds, a tenth of the time of small models. Here the calling thread switches once, and operators that it runs alone
// leave the register as it is, except those that need denormals (`denormals.c`). Copies that are in place do not run
// (`memory/views.c`), and those of a few bytes run at once.

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <pthreadpool.h>

#include "hooks/flags.h"
#include "hooks/run.h"
#include "threads/pool.h"
#include "xnnpack.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

#ifdef __SSE__
#include <xmmintrin.h>

// Denormal operands and results become 0: the bits that pthreadpool sets.
#define DENORMALS_OFF 0x8040

typedef unsigned int control;

static control present_control(void) { return _mm_getcsr(); }

static void restore(control before) { _mm_setcsr(before); }

static void switch_denormals(bool on) {
  const control before = _mm_getcsr();
  _mm_setcsr(on ? before & ~DENORMALS_OFF : before | DENORMALS_OFF);
}

#else

// pthreadpool switches denormals.
typedef char control;

static control present_control(void) { return 0; }

static void restore(control before) { (void) before; }

static void switch_denormals(bool on) { (void) on; }

#endif

// The way through XNNPACK and pthreadpool takes several times as long as to copy a row of a table.
static void copy_few(const struct xnn_operator* op) {
  switch (op->type) {
    case xnn_operator_type_slice_nd_x8:
    case xnn_operator_type_slice_nd_x16:
    case xnn_operator_type_slice_nd_x32:
      memcpy(op->context.slice.output, op->context.slice.input, op->context.slice.contiguous_size);
      return;
    default:
      memcpy(op->context.univector_contiguous.y, op->context.univector_contiguous.x, op->compute[0].range[0]);
  }
}

enum xnn_status xnnpack_sys_run_operator(xnn_operator_t op, size_t node, size_t object, pthreadpool_t threads) {
  if ((op->flags & XNNPACK_SYS_SWITCHES_DENORMALS) != 0) {
    switch_denormals((op->flags & XNNPACK_SYS_KEEPS_DENORMALS) != 0);
  }
  if ((op->flags & XNNPACK_SYS_IS_IN_PLACE) != 0) {
    return xnn_status_success;
  }
  if ((op->flags & XNNPACK_SYS_COPIES_FEW) != 0 && op->state == xnn_run_state_ready) {
    copy_few(op);
    return xnn_status_success;
  }
  return xnn_run_operator_with_index(op, node, object, threads);
}

enum xnn_status xnn_invoke_runtime(xnn_runtime_t runtime) {
  const control before = present_control();
  switch_denormals(false);
  const enum xnn_status status = xnnpack_sys_invoke_runtime(runtime);
  restore(before);
  return status;
}

// Takes effect with the next reshape, which divides operators into tiles.
void xnnpack_sys_set_threads(xnn_runtime_t runtime, pthreadpool_t threads) { runtime->threadpool = threads; }

size_t xnnpack_sys_count_operators(xnn_runtime_t runtime) { return runtime->num_ops; }

static enum xnn_status run_operator(const struct xnn_operator_data* operator, size_t index, pthreadpool_t threads) {
  enum xnn_status status = xnn_status_success;
  // Missing operators were merged into others.
  for (size_t i = 0; i < XNN_MAX_OPERATOR_OBJECTS && status == xnn_status_success; i++) {
    if (operator->operator_objects[i] != NULL) {
      status = xnnpack_sys_run_operator(operator->operator_objects[i], index, i, threads);
    }
  }
  return status;
}

// Runs operators in order, each with at most `threads[i]` threads.
enum xnn_status xnnpack_sys_run_operators(xnn_runtime_t runtime, const uint32_t* threads, size_t first, size_t end) {
  const control before = present_control();
  switch_denormals(first < end && (runtime->opdata[first].flags & XNNPACK_SYS_FINDS_DENORMALS) != 0);
  enum xnn_status status = xnn_status_success;
  for (size_t i = first; i < end && status == xnn_status_success; i++) {
    pthreadpool_t pool = runtime->threadpool;
    // `struct pthreadpool` is that of `threads/pool.h`.
    struct pthreadpool fewer;
    if (threads[i] <= 1) {
      pool = NULL;
    } else if (pool != NULL && threads[i] < pool->threads) {
      fewer = (struct pthreadpool) {.threads = threads[i], .processors = pool->processors};
      pool = &fewer;
    }
    status = run_operator(&runtime->opdata[i], i, pool);
  }
  restore(before);
  return status;
}
