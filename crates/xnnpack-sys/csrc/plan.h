// Places for tensors: beside each other where they are in use at once.

#ifndef XNNPACK_SYS_PLAN_H
#define XNNPACK_SYS_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack/memory-planner.h"

// Gives a value the lowest place that others leave, if it ends at `most` at the latest. Those that have a place, `count` of
// them, are sorted by where they start, and then it is one of them.
bool xnnpack_sys_place(struct xnn_usage_record** placed, size_t count, struct xnn_usage_record* current, size_t most);

// XNNPACK's `xnn_plan_value_allocation_tracker`.
void xnnpack_sys_plan_values(struct xnn_value_allocation_tracker* tracker);

// Sorts values by their sizes, the largest first.
void xnnpack_sys_sort_by_size(struct xnn_usage_record** values, size_t count);

#endif
