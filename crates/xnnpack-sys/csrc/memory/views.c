// Values that lie in the memory of others, so that operators which would only copy them have nothing to do: a tensor with another
// shape, a contiguous slice, and the operands of a concatenation along the outermost dimension.
//
// XNNPACK copies in all of these cases. It computes in place, but only where operand and result have one reader each.
//
// Some views are of external values: results of inputs that are moved lie in the inputs, and what is moved to an output is computed
// there. To XNNPACK these are external values, whose addresses are set before a run. The caller's outputs need no readable bytes
// behind them, so that operators which compute never read what lies in an output, only those that copy do.
//
// All other views lie in the memory of an intermediate value, their root, until the last of its views has been read.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/datatype.h"
#include "xnnpack/memory-planner.h"
#include "xnnpack/node-type.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

#include "hooks/flags.h"
#include "memory/views.h"

// One thread copies as many bytes without help.
#define MOST_OF_FEW 4096

// Bytes that an operator moves from a value to another. 0 of them for results that nothing reads.
struct part {
  uint32_t input;
  uint32_t output;
  size_t input_offset;
  size_t output_offset;
  size_t size;
};

// Memory at an offset in that of a value.
struct place {
  uint32_t root;
  size_t offset;
};

// Kinds of operators that move bytes.
enum move { COMPUTES, RESHAPES, SLICES, JOINS, SPLITS };

static enum move move_of(enum xnn_node_type type) {
  switch (type) {
    case xnn_node_type_copy:
    case xnn_node_type_static_expand_dims:
    case xnn_node_type_static_reshape:
      return RESHAPES;
    case xnn_node_type_static_slice:
      return SLICES;
    case xnn_node_type_concatenate2:
    case xnn_node_type_concatenate3:
    case xnn_node_type_concatenate4:
    case xnn_node_type_concatenate5:
      return JOINS;
    case xnn_node_type_even_split2:
    case xnn_node_type_even_split3:
    case xnn_node_type_even_split4:
      return SPLITS;
    default:
      return COMPUTES;
  }
}

static bool computes_in_place(enum xnn_node_type type) {
  return type == xnn_node_type_unary_elementwise || type == xnn_node_type_binary_elementwise || type == xnn_node_type_softmax;
}

// Finds the first element of a slice. Returns false if the slice is not contiguous: behind a dimension of several elements, all
// dimensions have to be whole.
static bool is_contiguous(const struct xnn_operator_data* op, const struct xnn_shape* shape, size_t* first) {
  bool is_inside = false;
  *first = 0;
  for (size_t i = 0; i < shape->num_dims; i++) {
    const size_t size = op->sizes[i] == 0 ? shape->dim[i] : op->sizes[i];
    if (is_inside && size != shape->dim[i]) {
      return false;
    }
    is_inside = is_inside || size > 1;
    *first = *first * shape->dim[i] + op->offsets[i];
  }
  return true;
}

// Whether all dimensions before the axis of a concatenation or of a split have one element.
static bool is_outermost(const struct xnn_operator_data* op, const struct xnn_shape* shape) {
  const size_t axis = op->axis < 0 ? op->axis + shape->num_dims : (size_t) op->axis;
  return xnn_shape_multiply_leading_dims(shape, axis) == 1;
}

// Lists what the operator moves in contiguous parts, one for each of its objects. Returns their number, 0 if it also computes or
// moves rows.
static size_t parts_of(const struct xnn_operator_data* op, const struct xnn_value* values, struct part* parts) {
  const enum move move = move_of(op->type);
  if (move == COMPUTES || values[op->inputs[0]].datatype == xnn_datatype_qdint8) {
    return 0;
  }
  const struct xnn_shape* shape = &values[op->inputs[0]].shape;
  const size_t count = move == JOINS ? op->num_inputs : op->num_outputs;
  size_t start = 0;
  if (move == SLICES) {
    if (!is_contiguous(op, shape, &start)) {
      return 0;
    }
    start *= xnn_datatype_size_bits(values[op->inputs[0]].datatype) / 8;
  } else if (move != RESHAPES && !is_outermost(op, shape)) {
    return 0;
  }
  for (size_t i = 0; i < count; i++) {
    struct part* part = &parts[i];
    *part = (struct part) {.input = op->inputs[move == JOINS ? i : 0], .output = op->outputs[move == JOINS ? 0 : i]};
    *(move == JOINS ? &part->output_offset : &part->input_offset) = start;
    const struct xnn_value* moved = &values[move == JOINS ? part->input : part->output];
    if (op->operator_objects[i] != NULL) {
      part->size = xnn_tensor_get_size(moved);
      start += part->size;
    } else if (move == SPLITS) {
      start += xnn_tensor_get_size(&values[part->input]) / count;
    }
  }
  return count;
}

static bool is_in_workspace(const struct xnn_value* value) {
  return value->allocation_type == xnn_allocation_type_workspace;
}

static struct place place_of(xnn_runtime_t runtime, const struct xnn_usage_record* usage, uint32_t id) {
  const struct xnn_value* value = &runtime->values[id];
  if (xnnpack_sys_is_hosted(value)) {
    return (struct place) {value->host_id, value->host_offset};
  }
  const uint32_t reused = usage[id].reuse_value_id;
  return reused == XNN_INVALID_VALUE_ID ? (struct place) {id, 0} : (struct place) {reused, value->host_offset};
}

static void host(struct xnn_value* value, struct place place) {
  value->allocation_type = xnn_allocation_type_external;
  value->host_id = place.root;
  value->host_offset = place.offset;
  value->host_alignment = 1;
}

// Has operands of the operator computed in the output that it would move them to, if it is all that reads them.
static void host_operands(xnn_runtime_t runtime, struct xnn_usage_record* usage, uint32_t at) {
  struct part parts[XNN_MAX_OPERATOR_OBJECTS];
  const size_t count = parts_of(&runtime->opdata[at], runtime->values, parts);
  for (size_t i = 0; i < count; i++) {
    struct xnn_value* input = &runtime->values[parts[i].input];
    struct place place = place_of(runtime, usage, parts[i].output);
    const struct xnn_value* root = &runtime->values[place.root];
    const bool is_output = xnn_value_is_external_output(root) && !xnn_value_is_external_input(root);
    const bool is_whole = is_in_workspace(input) && parts[i].size == xnn_tensor_get_size(input);
    struct xnn_usage_record* use = &usage[parts[i].input];
    if (is_output && is_whole && input->first_consumer == at && use->last_node == at) {
      place.offset += parts[i].output_offset;
      host(input, place);
      struct xnn_usage_record* host_use = &usage[place.root];
      host_use->first_node = use->first_node < host_use->first_node ? use->first_node : host_use->first_node;
    }
  }
}

// Places results of moves in the external value that has their bytes.
static void host_results(xnn_runtime_t runtime, const struct xnn_usage_record* usage, uint32_t at) {
  struct part parts[XNN_MAX_OPERATOR_OBJECTS];
  const size_t count = parts_of(&runtime->opdata[at], runtime->values, parts);
  for (size_t i = 0; i < count; i++) {
    struct xnn_value* output = &runtime->values[parts[i].output];
    struct place place = place_of(runtime, usage, parts[i].input);
    const bool is_whole = is_in_workspace(output) && parts[i].size == xnn_tensor_get_size(output);
    if (is_whole && xnn_value_is_external(&runtime->values[place.root])) {
      place.offset += parts[i].input_offset;
      host(output, place);
    }
  }
}

void xnnpack_sys_host_views(xnn_runtime_t runtime, struct xnn_usage_record* usage) {
  for (uint32_t i = runtime->num_ops; i-- > 0;) {
    host_operands(runtime, usage, i);
  }
  for (uint32_t i = 0; i < runtime->num_ops; i++) {
    host_results(runtime, usage, i);
  }
}

// Places a value in the workspace in the memory of another.
static void join(xnn_runtime_t runtime, struct xnn_usage_record* usage, uint32_t id, struct place place) {
  runtime->values[id].host_offset = place.offset;
  usage[id].tensor_size = 0;
  usage[id].reuse_value_id = place.root;
  struct xnn_usage_record* root = &usage[place.root];
  root->last_node = usage[id].last_node > root->last_node ? usage[id].last_node : root->last_node;
}

// Places the results of moves in their operand.
static void join_results(xnn_runtime_t runtime, struct xnn_usage_record* usage, const struct part* parts, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const struct xnn_value* output = &runtime->values[parts[i].output];
    struct place place = place_of(runtime, usage, parts[i].input);
    const bool is_whole = is_in_workspace(output) && parts[i].size == xnn_tensor_get_size(output);
    if (is_whole && is_in_workspace(&runtime->values[place.root])) {
      place.offset += parts[i].input_offset;
      join(runtime, usage, parts[i].output, place);
    }
  }
}

// Places the result of an operator in an operand of the same size. It must not need anything in the operand's memory afterwards, nor
// read it as another operand, which may be broadcast.
static void join_operand(xnn_runtime_t runtime, struct xnn_usage_record* usage, uint32_t at) {
  const struct xnn_operator_data* op = &runtime->opdata[at];
  const struct xnn_value* output = &runtime->values[op->outputs[0]];
  for (uint32_t i = 0; i < op->num_inputs && is_in_workspace(output); i++) {
    const struct place place = place_of(runtime, usage, op->inputs[i]);
    uint32_t readers = 0;
    for (uint32_t j = 0; j < op->num_inputs; j++) {
      readers += place_of(runtime, usage, op->inputs[j]).root == place.root;
    }
    const struct xnn_value* input = &runtime->values[op->inputs[i]];
    const bool fits = is_in_workspace(input) && xnn_tensor_get_size(input) == xnn_tensor_get_size(output);
    if (fits && readers == 1 && usage[place.root].last_node == at) {
      join(runtime, usage, op->outputs[0], place);
      return;
    }
  }
}

// Marks the objects of an operator that have nothing to do, or little.
static void mark(xnn_runtime_t runtime, const struct xnn_usage_record* usage, struct xnn_operator_data* op, const struct part* parts,
                 size_t count) {
  for (size_t i = 0; i < XNN_MAX_OPERATOR_OBJECTS && move_of(op->type) != COMPUTES; i++) {
    struct xnn_operator* object = op->operator_objects[i];
    if (object == NULL) {
      continue;
    }
    object->flags &= ~(XNNPACK_SYS_IS_IN_PLACE | XNNPACK_SYS_COPIES_FEW);
    if (i < count) {
      const struct place from = place_of(runtime, usage, parts[i].input);
      const struct place to = place_of(runtime, usage, parts[i].output);
      const bool is_there = from.offset + parts[i].input_offset == to.offset + parts[i].output_offset;
      if (from.root == to.root && is_there) {
        object->flags |= XNNPACK_SYS_IS_IN_PLACE;
      } else if (parts[i].size <= MOST_OF_FEW) {
        object->flags |= XNNPACK_SYS_COPIES_FEW;
      }
    }
  }
}

// A number that depends on all parts.
static uint64_t summary(const struct part* parts, size_t count) {
  uint64_t sum = count;
  for (size_t i = 0; i < count; i++) {
    const size_t numbers[] = {parts[i].input_offset, parts[i].output_offset, parts[i].size};
    for (size_t j = 0; j < 3; j++) {
      sum = (sum ^ numbers[j]) * UINT64_C(0x100000001b3);
    }
  }
  return sum;
}

void xnnpack_sys_share_values(struct xnn_value_allocation_tracker* tracker, xnn_runtime_t runtime) {
  struct xnn_usage_record* usage = tracker->usage;
  for (uint32_t i = 0; i < runtime->num_ops; i++) {
    struct xnn_operator_data* op = &runtime->opdata[i];
    struct part parts[XNN_MAX_OPERATOR_OBJECTS];
    const size_t count = parts_of(op, runtime->values, parts);
    op->planned_parts = summary(parts, count);
    join_results(runtime, usage, parts, count);
    if (computes_in_place(op->type)) {
      join_operand(runtime, usage, i);
    }
    mark(runtime, usage, op, parts, count);
  }
}

bool xnnpack_sys_views_stay(xnn_runtime_t runtime) {
  for (uint32_t i = 0; i < runtime->num_ops; i++) {
    struct part parts[XNN_MAX_OPERATOR_OBJECTS];
    const size_t count = parts_of(&runtime->opdata[i], runtime->values, parts);
    if (summary(parts, count) != runtime->opdata[i].planned_parts) {
      return false;
    }
  }
  return true;
}
