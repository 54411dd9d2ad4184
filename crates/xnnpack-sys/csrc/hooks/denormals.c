// Which operators compute with denormals.
//
// Processors may multiply denormals a hundred times as slowly as other numbers, and XNNPACK takes them for 0 everywhere, so that a
// quotient or a logarithm becomes NaN or infinite. Here denormals are on while an operator runs whose result for a denormal differs
// from that for 0, and while its operands are computed. The search for the operators that compute them ends at sums of products,
// where one operand that is not denormal is enough for the same result, and at products, which differ only if the other operand
// is very large.

#include <stdbool.h>
#include <stddef.h>

#include "hooks/flags.h"
#include "hooks/run.h"
#include "xnnpack/allocator.h"
#include "xnnpack/node-type.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

enum role {
  // The result for a denormal is far from that for 0.
  TELLS,
  // The result for a denormal is far from that for 0, but operands may be computed without
  // denormals.
  TELLS_ALONE,
  // Results may be denormal if operands are.
  PASSES,
  // Results hardly depend on whether operands are denormal or 0.
  STOPS,
};

static enum role role_of_unary(enum xnn_unary_operator op) {
  switch (op) {
    case xnn_unary_ceiling:
    case xnn_unary_cube_root:
    case xnn_unary_floor:
    case xnn_unary_log:
    case xnn_unary_reciprocal_square_root:
    case xnn_unary_sign:
    case xnn_unary_square_root:
      return TELLS;
    case xnn_unary_cosine:
    case xnn_unary_exp:
    case xnn_unary_sigmoid:
      return STOPS;
    default:
      return PASSES;
  }
}

static enum role role_of_binary(enum xnn_binary_operator op) {
  switch (op) {
    case xnn_binary_atan2:
    case xnn_binary_divide:
    case xnn_binary_modulus:
    case xnn_binary_pow:
      return TELLS;
    case xnn_binary_multiply:
    case xnn_binary_prelu:
      return TELLS_ALONE;
    default:
      return PASSES;
  }
}

static enum role role_of(const struct xnn_node* node) {
  switch (node->type) {
    case xnn_node_type_unary_elementwise:
      return role_of_unary(node->unary_operator);
    case xnn_node_type_binary_elementwise:
      return role_of_binary(node->binary_operator);
    case xnn_node_type_concatenate2:
    case xnn_node_type_concatenate3:
    case xnn_node_type_concatenate4:
    case xnn_node_type_concatenate5:
    case xnn_node_type_copy:
    case xnn_node_type_depth_to_space_2d:
    case xnn_node_type_even_split2:
    case xnn_node_type_even_split3:
    case xnn_node_type_even_split4:
    case xnn_node_type_max_pooling_2d:
    case xnn_node_type_space_to_depth_2d:
    case xnn_node_type_static_constant_pad:
    case xnn_node_type_static_expand_dims:
    case xnn_node_type_static_reshape:
    case xnn_node_type_static_slice:
    case xnn_node_type_static_transpose:
      return PASSES;
    default:
      return STOPS;
  }
}

static void keep_denormals(struct xnn_operator_data* opdata) {
  for (size_t i = 0; i < XNN_MAX_OPERATOR_OBJECTS; i++) {
    if (opdata->operator_objects[i] != NULL) {
      opdata->operator_objects[i]->flags |= XNNPACK_SYS_KEEPS_DENORMALS;
    }
  }
}

// Marks an operator. `read[id]`: value `id` is an operand of an operator that tells denormals from 0.
static void mark(const struct xnn_node* node, struct xnn_operator_data* opdata, bool* read) {
  const enum role role = role_of(node);
  bool is_read = false;
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    is_read |= read[node->outputs[i]];
  }
  if (is_read || role == TELLS || role == TELLS_ALONE) {
    keep_denormals(opdata);
  }
  const bool looks_further = role == TELLS || (is_read && role != STOPS);
  for (uint32_t i = 0; looks_further && i < node->num_inputs; i++) {
    read[node->inputs[i]] = true;
  }
}

// Marks the operators between which denormals are switched. They run in order.
static void mark_switches(xnn_runtime_t runtime) {
  bool are_on = false;
  for (size_t i = 0; i < runtime->num_ops; i++) {
    struct xnn_operator_data* opdata = &runtime->opdata[i];
    opdata->flags |= are_on ? XNNPACK_SYS_FINDS_DENORMALS : 0;
    for (size_t j = 0; j < XNN_MAX_OPERATOR_OBJECTS; j++) {
      xnn_operator_t op = opdata->operator_objects[j];
      if (op != NULL && ((op->flags & XNNPACK_SYS_KEEPS_DENORMALS) != 0) != are_on) {
        op->flags |= XNNPACK_SYS_SWITCHES_DENORMALS;
        are_on = !are_on;
      }
    }
  }
}

void xnnpack_sys_mark_denormals(xnn_subgraph_t subgraph, xnn_runtime_t runtime) {
  bool* read = xnn_allocate_zero_memory(subgraph->num_values * sizeof(bool));
  for (size_t i = subgraph->num_nodes; i-- > 0;) {
    const struct xnn_node* node = &subgraph->nodes[i];
    if (node->type == xnn_node_type_invalid) {
      continue;
    }
    if (read != NULL) {
      mark(node, &runtime->opdata[i], read);
    } else {
      keep_denormals(&runtime->opdata[i]);
    }
  }
  xnn_release_memory(read);
  mark_switches(runtime);
}
