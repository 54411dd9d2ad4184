// Places for tensors: those that are in use at once do not overlap.

#ifndef XNNPACK_SYS_PLAN_H
#define XNNPACK_SYS_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack/memory-planner.h"

// Gives a value the lowest place that the `count` placed values leave free, and inserts it among them, which are sorted by offset.
// Returns false if it would end behind `most`.
bool xnnpack_sys_place(struct xnn_usage_record** placed, size_t count, struct xnn_usage_record* current, size_t most);

// XNNPACK's `xnn_plan_value_allocation_tracker`.
void xnnpack_sys_plan_values(struct xnn_value_allocation_tracker* tracker);

// Sorts values by their sizes, the largest first.
void xnnpack_sys_sort_by_size(struct xnn_usage_record** values, size_t count);

#endif
