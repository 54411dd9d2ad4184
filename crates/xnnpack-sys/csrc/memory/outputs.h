// Intermediate tensors in the memory of outputs, see `outputs.c`.

#ifndef XNNPACK_SYS_OUTPUTS_H
#define XNNPACK_SYS_OUTPUTS_H

#include <stdbool.h>

#include "xnnpack/memory-planner.h"
#include "xnnpack/subgraph.h"

// Moves values in outputs back to the workspace, and calls `xnn_init_value_allocation_tracker`.
void xnnpack_sys_start_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

// Replaces `xnn_plan_value_allocation_tracker`: places values in outputs, and the others in the
// workspace.
void xnnpack_sys_finish_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

// Whether values fit into outputs of the present sizes. Their own sizes are the largest that they have had.
bool xnnpack_sys_values_fit(xnn_runtime_t runtime);

// Points values in outputs to where the caller's outputs are now.
void xnnpack_sys_point_values(xnn_runtime_t runtime);

#endif
