// Values in the memory of others, see `views.c`.

#ifndef XNNPACK_SYS_VIEWS_H
#define XNNPACK_SYS_VIEWS_H

#include <stdbool.h>

#include "xnnpack/memory-planner.h"
#include "xnnpack/subgraph.h"

// Whether a value lies in the memory of an external one.
static inline bool xnnpack_sys_is_hosted(const struct xnn_value* value) {
  return value->allocation_type == xnn_allocation_type_external && !xnn_value_is_external(value);
}

// Whether it has the bytes of the external value, or will have them, so that they are at an exact place.
static inline bool xnnpack_sys_is_view(const struct xnn_value* value) {
  return xnnpack_sys_is_hosted(value) && value->host_alignment == 1;
}

// Places views of inputs and of outputs. All intermediate values are in the workspace before.
void xnnpack_sys_host_views(xnn_runtime_t runtime, struct xnn_usage_record* usage);

// Replaces XNNPACK's `optimize_tensor_allocation_for_in_place_operations`: places views of intermediate values, and results that
// are computed in place. Marks the operators that find their results in place.
void xnnpack_sys_share_values(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime);

// Whether operators move the bytes that they moved when values were placed.
bool xnnpack_sys_views_stay(xnn_runtime_t runtime);

#endif
