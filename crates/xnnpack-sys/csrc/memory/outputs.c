// Intermediate tensors that are not needed any more when a graph writes an output lie in that output's memory until then. The
// masks of a segmentation or a picture are large enough for all of them, and the workspace is smaller by as much.
//
// To XNNPACK such tensors are external ones, whose addresses are set before a run. The caller's outputs need not be aligned, and
// nothing behind them may be read: the tensors lie between the first multiple of an allocation's alignment and the last bytes.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/allocator.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"
#include "xnnpack/subgraph.h"

#include "memory/outputs.h"
#include "memory/plan.h"
#include "memory/views.h"

// Smaller outputs are not used.
#define LEAST_OUTPUT (16 << 10)

static void put(struct xnn_value* value, uint32_t output, size_t offset) {
  value->allocation_type = xnn_allocation_type_external;
  value->host_id = output;
  value->host_offset = offset;
  value->host_alignment = XNN_ALLOCATION_ALIGNMENT;
}

// Returns the bytes of an output that values may take.
static size_t room(const struct xnn_value* output) {
  const size_t size = xnn_tensor_get_size(output);
  // Sparse microkernels read that far beyond values.
  const size_t margins = XNN_ALLOCATION_ALIGNMENT + 2 * XNN_EXTRA_BYTES;
  return size < LEAST_OUTPUT ? 0 : size - margins;
}

void xnnpack_sys_point_values(xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_values; i++) {
    struct xnn_value* value = &runtime->values[i];
    if (xnnpack_sys_is_hosted(value)) {
      const uintptr_t start = (uintptr_t) runtime->values[value->host_id].data;
      value->data = start == 0 ? NULL : (void*) (round_up_po2(start, value->host_alignment) + value->host_offset);
    }
  }
}

// Moves as many values as fit from the workspace to an output.
static void move(xnn_runtime_t runtime, struct xnn_usage_record* usage, uint32_t output) {
  const size_t most = room(&runtime->values[output]);
  struct xnn_usage_record** values = xnn_allocate_memory(2 * runtime->num_values * sizeof(struct xnn_usage_record*));
  if (values == NULL) {
    return;
  }
  size_t count = 0;
  for (size_t i = 0; i < runtime->num_values; i++) {
    const bool is_over = usage[i].tensor_size != 0 && usage[i].last_node < usage[output].first_node;
    // Values that are quantized at run time have their parameters behind them.
    if (is_over && runtime->values[i].datatype != xnn_datatype_qdint8) {
      values[count++] = usage + i;
    }
  }
  xnnpack_sys_sort_by_size(values, count);
  struct xnn_usage_record** placed = values + runtime->num_values;
  size_t moved = 0;
  for (size_t i = 0; i < count; i++) {
    moved += xnnpack_sys_place(placed, moved, values[i], most);
  }
  for (size_t i = 0; i < moved; i++) {
    put(&runtime->values[placed[i] - usage], output, placed[i]->alloc_offset);
    // The value takes no memory of the workspace.
    placed[i]->tensor_size = 0;
  }
  xnn_release_memory(values);
}

// Moves as many values as fit from the workspace to outputs.
static void move_all(xnn_runtime_t runtime, struct xnn_usage_record* usage) {
  for (uint32_t i = 0; i < runtime->num_values; i++) {
    const struct xnn_value* value = &runtime->values[i];
    if (xnn_value_is_external_output(value) && !xnn_value_is_external_input(value) && room(value) != 0) {
      move(runtime, usage, i);
    }
  }
  // Values in the memory of others move with them.
  for (size_t i = 0; i < runtime->num_values; i++) {
    const uint32_t reused = usage[i].reuse_value_id;
    if (reused != XNN_INVALID_VALUE_ID && xnnpack_sys_is_hosted(&runtime->values[reused])) {
      const struct xnn_value* root = &runtime->values[reused];
      struct xnn_value* value = &runtime->values[i];
      put(value, root->host_id, root->host_offset + value->host_offset);
    }
  }
}

void xnnpack_sys_start_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_values; i++) {
    struct xnn_value* value = &runtime->values[i];
    if (xnnpack_sys_is_hosted(value)) {
      value->allocation_type = xnn_allocation_type_workspace;
    }
    value->host_offset = 0;
  }
  xnn_init_value_allocation_tracker(tracker, runtime);
  xnnpack_sys_host_views(runtime, tracker->usage);
}

void xnnpack_sys_finish_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime) {
  struct xnn_usage_record* usage = tracker->usage;
  move_all(runtime, usage);
  xnnpack_sys_plan_values(tracker);
  for (size_t i = 0; i < runtime->num_values; i++) {
    if (usage[i].reuse_value_id != XNN_INVALID_VALUE_ID) {
      usage[i].alloc_offset += runtime->values[i].host_offset;
    }
  }
  xnnpack_sys_point_values(runtime);
}

bool xnnpack_sys_values_fit(xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_values; i++) {
    const struct xnn_value* value = &runtime->values[i];
    if (xnnpack_sys_is_hosted(value) && !xnnpack_sys_is_view(value)) {
      const size_t end = value->host_offset + xnn_tensor_get_rounded_size(value);
      if (end > room(&runtime->values[value->host_id])) {
        return false;
      }
    }
  }
  return xnnpack_sys_views_stay(runtime);
}
