// How a runtime runs: with which threads each operator, and without denormals.
//
// XNNPACK has pthreadpool switch denormals off for every step of every operator. To read and to write the processor's control
// register takes ten nanoseconds, a tenth of what small models take. Here the calling thread does it once, and operators
// that it runs alone leave the register as it is (`denormals.h`). What they compute is the same.

#include <stdbool.h>
#include <stddef.h>

#include <pthreadpool.h>

#include "xnnpack.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

#ifdef __SSE__
#include <xmmintrin.h>

// Of operands and of results: the bits that pthreadpool sets.
#define DENORMALS_OFF 0x8040

typedef unsigned int control;

static control switch_denormals_off(void) {
  const control before = _mm_getcsr();
  _mm_setcsr(before | DENORMALS_OFF);
  return before;
}

static void restore(control before) { _mm_setcsr(before); }

#else

typedef char control;

static control switch_denormals_off(void) { return 0; }

static void restore(control before) { (void) before; }

#endif

// XNNPACK's `xnn_invoke_runtime`, under another name.
enum xnn_status xnnpack_sys_invoke_runtime(xnn_runtime_t runtime);

void xnnpack_sys_set_threads(xnn_runtime_t runtime, pthreadpool_t threads);
size_t xnnpack_sys_count_operators(xnn_runtime_t runtime);
enum xnn_status xnnpack_sys_run_operators(xnn_runtime_t runtime, const bool* alone, size_t first, size_t end);

enum xnn_status xnn_invoke_runtime(xnn_runtime_t runtime) {
  const control before = switch_denormals_off();
  const enum xnn_status status = xnnpack_sys_invoke_runtime(runtime);
  restore(before);
  return status;
}

// From the next reshape on, for which operators are cut into tiles.
void xnnpack_sys_set_threads(xnn_runtime_t runtime, pthreadpool_t threads) { runtime->threadpool = threads; }

size_t xnnpack_sys_count_operators(xnn_runtime_t runtime) { return runtime->num_ops; }

static enum xnn_status run_operator(const struct xnn_operator_data* operator, size_t index, pthreadpool_t threads) {
  enum xnn_status status = xnn_status_success;
  // Those that are missing were merged into others.
  for (size_t i = 0; i < XNN_MAX_OPERATOR_OBJECTS && status == xnn_status_success; i++) {
    if (operator->operator_objects[i] != NULL) {
      status = xnn_run_operator_with_index(operator->operator_objects[i], index, i, threads);
    }
  }
  return status;
}

// Runs operators in their order, those that are to be `alone` by the calling thread.
enum xnn_status xnnpack_sys_run_operators(xnn_runtime_t runtime, const bool* alone, size_t first, size_t end) {
  const control before = switch_denormals_off();
  enum xnn_status status = xnn_status_success;
  for (size_t i = first; i < end && status == xnn_status_success; i++) {
    status = run_operator(&runtime->opdata[i], i, alone[i] ? NULL : runtime->threadpool);
  }
  restore(before);
  return status;
}
