// Intermediate tensors in the memory of outputs, see `outputs.c`.

#ifndef XNNPACK_SYS_OUTPUTS_H
#define XNNPACK_SYS_OUTPUTS_H

#include <stdbool.h>

#include "xnnpack/memory-planner.h"
#include "xnnpack/subgraph.h"

// Moves all intermediate values back to the workspace, calls `xnn_init_value_allocation_tracker`, and places views of inputs and
// outputs.
void xnnpack_sys_start_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

// Replaces `xnn_plan_value_allocation_tracker`: places values in outputs, and the others in the
// workspace.
void xnnpack_sys_finish_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

// Whether values fit into outputs of the present sizes, and views are where they were. The sizes of values are the largest that
// they have had.
bool xnnpack_sys_values_fit(xnn_runtime_t runtime);

// Points values in outputs and views of inputs to where the caller's tensors are now.
void xnnpack_sys_point_values(xnn_runtime_t runtime);

#endif
