// Intermediate tensors that are no longer needed when a graph writes an output lie in that output's memory until then: a
// segmentation's masks, a picture, have room for all of them, and the workspace is so much smaller.
//
// XNNPACK takes such tensors for external ones, whose places it is told before a run. Outputs start where the caller has them,
// and have nothing behind them that could be read: places begin at the first multiple of an allocation's alignment, and end
// before the last bytes.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/allocator.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"
#include "xnnpack/subgraph.h"

#include "outputs.h"
#include "plan.h"

// XNNPACK's functions, under other names.
enum xnn_status xnnpack_sys_reshape_runtime(xnn_runtime_t runtime);
enum xnn_status xnnpack_sys_setup_runtime_v2(
    xnn_runtime_t runtime, size_t num_external_values, const struct xnn_external_value* external_values);

// Of `runtime.c`.
enum xnn_status xnn_plan_memory(xnn_runtime_t runtime);

// Smaller outputs are not worth it.
#define LEAST_OUTPUT (16 << 10)

// Where a value lies in an output: in fields that only rewriting for fp16 uses, before there is a runtime.
static uint32_t output_of(const struct xnn_value* value) {
  return value->fp16_id;
}

static size_t offset_of(const struct xnn_value* value) {
  return (uintptr_t) value->fp16_temp_data;
}

static void put(struct xnn_value* value, uint32_t output, size_t offset) {
  value->allocation_type = xnn_allocation_type_external;
  value->fp16_id = output;
  value->fp16_temp_data = (void*) offset;
}

// Whether a value lies in an output.
static bool is_guest(const struct xnn_value* value) {
  return value->allocation_type == xnn_allocation_type_external && !xnn_value_is_external(value);
}

// The bytes of an output that values may take.
static size_t room(const struct xnn_value* output) {
  const size_t size = xnn_tensor_get_size(output);
  // Sparse microkernels read as far beyond values.
  const size_t margins = XNN_ALLOCATION_ALIGNMENT + 2 * XNN_EXTRA_BYTES;
  return size < LEAST_OUTPUT ? 0 : size - margins;
}

// Values that lie in outputs, to where those are now.
static void point(xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_values; i++) {
    struct xnn_value* value = &runtime->values[i];
    if (is_guest(value)) {
      const uintptr_t start = (uintptr_t) runtime->values[output_of(value)].data;
      value->data = start == 0 ? NULL : (void*) (round_up_po2(start, XNN_ALLOCATION_ALIGNMENT) + offset_of(value));
    }
  }
}

// Moves what it can from the workspace to an output.
static void move(xnn_runtime_t runtime, struct xnn_usage_record* usage, uint32_t output) {
  const size_t most = room(&runtime->values[output]);
  struct xnn_usage_record** values = xnn_allocate_memory(2 * runtime->num_values * sizeof(struct xnn_usage_record*));
  if (values == NULL) {
    return;
  }
  size_t count = 0;
  for (size_t i = 0; i < runtime->num_values; i++) {
    const bool is_over = usage[i].tensor_size != 0 && usage[i].last_node < usage[output].first_node;
    // Parameters of what is quantized as it is computed lie behind it.
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
    // It needs no place in the workspace.
    placed[i]->tensor_size = 0;
  }
  xnn_release_memory(values);
}

// Moves what it can from the workspace to outputs.
static void move_all(xnn_runtime_t runtime, struct xnn_usage_record* usage) {
  for (uint32_t i = 0; i < runtime->num_values; i++) {
    const struct xnn_value* value = &runtime->values[i];
    if (xnn_value_is_external_output(value) && !xnn_value_is_external_input(value) && room(value) != 0) {
      move(runtime, usage, i);
    }
  }
  // What is computed in place lies where its first operand does.
  for (size_t i = 0; i < runtime->num_values; i++) {
    const uint32_t reused = usage[i].reuse_value_id;
    if (reused != XNN_INVALID_VALUE_ID && is_guest(&runtime->values[reused])) {
      const struct xnn_value* operand = &runtime->values[reused];
      put(&runtime->values[i], output_of(operand), offset_of(operand));
    }
  }
}

void xnnpack_sys_start_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_values; i++) {
    struct xnn_value* value = &runtime->values[i];
    if (is_guest(value)) {
      value->allocation_type = xnn_allocation_type_workspace;
    }
  }
  xnn_init_value_allocation_tracker(tracker, runtime);
}

void xnnpack_sys_finish_plan(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime) {
  move_all(runtime, tracker->usage);
  xnnpack_sys_plan_values(tracker);
  point(runtime);
}

// Whether values fit into outputs of the present sizes. Theirs are the largest that they have had.
static bool fit(xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_values; i++) {
    const struct xnn_value* value = &runtime->values[i];
    if (is_guest(value)) {
      const size_t end = offset_of(value) + xnn_tensor_get_rounded_size(value);
      if (end > room(&runtime->values[output_of(value)])) {
        return false;
      }
    }
  }
  return true;
}

enum xnn_status xnn_reshape_runtime(xnn_runtime_t runtime) {
  const enum xnn_status status = xnnpack_sys_reshape_runtime(runtime);
  return status == xnn_status_success && !fit(runtime) ? xnn_plan_memory(runtime) : status;
}

enum xnn_status xnn_setup_runtime_v2(
    xnn_runtime_t runtime, size_t num_external_values, const struct xnn_external_value* external_values) {
  for (size_t i = 0; i < num_external_values; i++) {
    const uint32_t id = external_values[i].id;
    if (id >= runtime->num_values || !xnn_value_is_external(&runtime->values[id])) {
      return xnn_status_invalid_parameter;
    }
  }
  for (size_t i = 0; i < num_external_values; i++) {
    runtime->values[external_values[i].id].data = external_values[i].data;
  }
  point(runtime);
  return xnnpack_sys_setup_runtime_v2(runtime, num_external_values, external_values);
}
