// Which operators compute with denormals.
//
// Processors multiply denormals a hundred times as slowly as other numbers, and XNNPACK takes them for 0 everywhere. That makes
// infinities, and what is no number, of a quotient or a logarithm: so they stay on for operators that tell a denormal from 0, and
// for those whose results such an operator reads. Behind a sum of products nobody looks further: one operand that is no denormal
// is enough for the sum to be the same. Nor behind a product, which tells denormals from 0 where its other operand is large.

#include <stdbool.h>
#include <stddef.h>

#include "denormals.h"
#include "xnnpack/allocator.h"
#include "xnnpack/node-type.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

enum role {
  // What it makes of a denormal is far from what it makes of 0.
  TELLS,
  // The same, but how its operands were computed does not matter.
  TELLS_ALONE,
  // Its results may be denormal where its operands are.
  PASSES,
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

// `read` are values that are read by what tells denormals from 0.
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
}
