// How a runtime is compiled and run, see `optimize.c`, `denormals.c` and `run.c`.

#ifndef XNNPACK_SYS_RUN_H
#define XNNPACK_SYS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthreadpool.h>

#include "xnnpack.h"

// `xnn_subgraph_optimize`, and the optimizations of this crate.
enum xnn_status xnnpack_sys_optimize_subgraph(xnn_subgraph_t subgraph, uint32_t flags);

// Sets the flags for denormals of the operators of a runtime that was made of `subgraph`.
void xnnpack_sys_mark_denormals(xnn_subgraph_t subgraph, xnn_runtime_t runtime);

// `xnn_run_operator_with_index`, with denormals as the operator needs them.
enum xnn_status xnnpack_sys_run_operator(xnn_operator_t op, size_t node, size_t object, pthreadpool_t threads);

// XNNPACK's `xnn_invoke_runtime`, renamed by an edit.
enum xnn_status xnnpack_sys_invoke_runtime(xnn_runtime_t runtime);

// Declared for Rust in `src/lib.rs`.
void xnnpack_sys_set_threads(xnn_runtime_t runtime, pthreadpool_t threads);
size_t xnnpack_sys_count_operators(xnn_runtime_t runtime);
bool xnnpack_sys_has_sound_weights(xnn_runtime_t runtime);
enum xnn_status xnnpack_sys_run_operators(xnn_runtime_t runtime, const uint32_t* threads, size_t first, size_t end);

#endif
