// Places of a graph's intermediate tensors in its workspace. XNNPACK's function puts a tensor behind the first of those that are
// in use with it, and never before it: workspaces are up to 2.7 times as large as necessary.
//
// Tensors are placed one after the other, the largest first, each at the lowest offset that the tensors in use with it leave free
// ("Greedy by Size for Offset Calculation" of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
// 2020). If that takes more than the tensors of one node need, the tensor that ended at the top is placed first and all others
// again. After a few rounds networks take what their largest node needs.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xnnpack.h"
#include "xnnpack/allocator.h"
#include "xnnpack/memory-planner.h"
#include "xnnpack/subgraph.h"

#include "memory/plan.h"

// Limits on the rounds, and on the pairs of tensors in all of them: planning takes little time for thousands of tensors, too.
#define MOST_ROUNDS 16
#define MOST_PAIRS (1 << 22)

// An allocation of this size fails on any system.
#define TOO_MUCH (SIZE_MAX / 2)

typedef struct xnn_usage_record value;

static bool meet(const value* a, const value* b) {
  return a->first_node <= b->last_node && b->first_node <= a->last_node;
}

static int compare_sizes(const void* left, const void* right) {
  const value* a = *(value* const*) left;
  const value* b = *(value* const*) right;
  if (a->tensor_size != b->tensor_size) {
    return a->tensor_size < b->tensor_size ? 1 : -1;
  }
  return (a > b) - (a < b);
}

void xnnpack_sys_sort_by_size(value** values, size_t count) {
  qsort(values, count, sizeof(value*), compare_sizes);
}

// Returns the bytes of all values together.
static size_t sum(value* const* values, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    bytes = values[i]->tensor_size < TOO_MUCH - bytes ? bytes + values[i]->tensor_size : TOO_MUCH;
  }
  return bytes;
}

// Returns the most bytes that are in use at once, which is the least that any plan takes.
static size_t least(value* const* values, size_t count) {
  size_t most = 0;
  for (size_t i = 0; i < count; i++) {
    size_t bytes = 0;
    for (size_t j = 0; j < count; j++) {
      const bool is_in_use = values[j]->first_node <= values[i]->first_node && values[i]->first_node <= values[j]->last_node;
      bytes += is_in_use ? values[j]->tensor_size : 0;
    }
    most = bytes > most ? bytes : most;
  }
  return most;
}

bool xnnpack_sys_place(value** placed, size_t count, value* current, size_t most) {
  size_t start = 0;
  for (size_t i = 0; i < count && placed[i]->alloc_offset < start + current->tensor_size; i++) {
    const size_t end = placed[i]->alloc_offset + placed[i]->tensor_size;
    if (end > start && meet(placed[i], current)) {
      start = end;
    }
  }
  if (start > most || current->tensor_size > most - start) {
    return false;
  }
  current->alloc_offset = start;
  size_t at = count;
  for (; at > 0 && placed[at - 1]->alloc_offset > start; at--) {
    placed[at] = placed[at - 1];
  }
  placed[at] = current;
  return true;
}

static size_t end_of(const value* placed) {
  return placed->alloc_offset + placed->tensor_size;
}

// Gives each value the lowest place that those before it leave free. `placed` is memory for as many. Returns the index of the value
// that ends at the top.
static size_t place(value* const* values, size_t count, value** placed) {
  size_t top = 0;
  for (size_t i = 0; i < count; i++) {
    xnnpack_sys_place(placed, i, values[i], TOO_MUCH);
    top = end_of(values[i]) > end_of(values[top]) ? i : top;
  }
  return top;
}

// Places values and returns the bytes that they span. `placed` and `best` are memory for as many.
static size_t plan(value** values, size_t count, value** placed, value** best) {
  xnnpack_sys_sort_by_size(values, count);
  const size_t enough = least(values, count);
  const size_t pairs = MOST_PAIRS / count / count;
  const size_t rounds = pairs < MOST_ROUNDS ? pairs + 1 : MOST_ROUNDS;
  size_t bytes = SIZE_MAX;
  size_t taken = SIZE_MAX;
  for (size_t round = 0; round < rounds && bytes > enough; round++) {
    const size_t top = place(values, count, placed);
    taken = end_of(values[top]);
    if (taken < bytes) {
      bytes = taken;
      memcpy(best, values, count * sizeof(value*));
    }
    value* highest = values[top];
    memmove(values + 1, values, top * sizeof(value*));
    values[0] = highest;
  }
  if (taken != bytes) {
    place(best, count, placed);
  }
  return bytes;
}

void xnnpack_sys_plan_values(struct xnn_value_allocation_tracker* tracker) {
  tracker->mem_arena_size = 0;
  if (tracker->min_value_id == XNN_INVALID_VALUE_ID) {
    return;
  }
  value* const usage = tracker->usage;
  const size_t most = tracker->max_value_id - tracker->min_value_id + 1;
  value** memory = xnn_allocate_memory(3 * most * sizeof(value*));
  if (memory == NULL) {
    tracker->mem_arena_size = TOO_MUCH;
    return;
  }
  size_t count = 0;
  for (size_t id = tracker->min_value_id; id <= tracker->max_value_id; id++) {
    if (usage[id].tensor_size != 0) {
      memory[count++] = usage + id;
    }
  }
  if (sum(memory, count) == TOO_MUCH) {
    tracker->mem_arena_size = TOO_MUCH;
  } else if (count != 0) {
    tracker->mem_arena_size = plan(memory, count, memory + most, memory + 2 * most);
  }
  xnn_release_memory(memory);
  // Values computed in place lie where their first operand does.
  for (size_t id = tracker->min_value_id; id <= tracker->max_value_id; id++) {
    if (usage[id].reuse_value_id != XNN_INVALID_VALUE_ID) {
      usage[id].alloc_offset = usage[usage[id].reuse_value_id].alloc_offset;
    }
  }
}
