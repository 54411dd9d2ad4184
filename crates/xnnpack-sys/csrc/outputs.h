// Put before XNNPACK's `runtime.c`: where intermediate tensors lie, see `outputs.c`.

#ifndef XNNPACK_SYS_OUTPUTS_H
#define XNNPACK_SYS_OUTPUTS_H

// The planner's header, before what it declares is called otherwise.
#include "xnnpack/memory-planner.h"
#include "xnnpack/subgraph.h"

// As `xnn_init_value_allocation_tracker`.
void xnnpack_sys_start_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

// As `xnn_plan_value_allocation_tracker`.
void xnnpack_sys_finish_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

#ifdef XNNPACK_SYS_PLANS
#define xnn_init_value_allocation_tracker xnnpack_sys_start_plan
#define xnn_plan_value_allocation_tracker(tracker) xnnpack_sys_finish_plan(tracker, runtime)
#endif

#endif
