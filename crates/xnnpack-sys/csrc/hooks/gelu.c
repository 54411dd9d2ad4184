// GELU with tanh as one node. XNNPACK has no function for it, so that graphs have its parts,
// x * sigmoid(((x^2 * a + b) * x) * c), which read and write seven tensors. Results differ in the last bits.

#include "hooks/gelu.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "config/operators.h"
#include "hooks/graph.h"
#include "ukernels/gelu_f32.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

// The factors are stored in place of the parameters of the logistic function, of which it has none.
_Static_assert(
    sizeof(struct xnnpack_sys_gelu) <= sizeof(((struct xnn_node*) NULL)->params), "parameters have room for the factors");
_Static_assert(
    sizeof(struct xnnpack_sys_gelu) <= sizeof(union xnn_unary_uparams), "parameters have room for the factors");

static enum xnn_status create(
    const struct xnn_node* node, const struct xnn_value* values, size_t num_values, struct xnn_operator_data* opdata,
    struct xnn_code_cache* code_cache, xnn_weights_cache_t weights_cache)
{
  xnn_operator_t* op = &opdata->operator_objects[0];
  const enum xnn_status status = xnn_create_unary_elementwise_nc(
      xnn_unary_sigmoid, xnn_datatype_fp32, xnn_datatype_fp32, /*params=*/NULL, /*input_quantization=*/NULL,
      /*output_quantization=*/NULL, node->flags, op);
  if (status == xnn_status_success) {
    (*op)->unary_elementwise_config = xnnpack_sys_f32_gelu_config();
    memcpy(&(*op)->params.unary, &node->params, sizeof(struct xnnpack_sys_gelu));
  }
  return status;
}

static const struct xnn_node* unary(const struct xnn_node* node, enum xnn_unary_operator op) {
  const bool is = node != NULL && node->type == xnn_node_type_unary_elementwise && node->unary_operator == op;
  return is ? node : NULL;
}

// Returns the operand of a function of two operands whose other operand is `id`, or XNN_INVALID_VALUE_ID.
static uint32_t other_operand(const struct xnn_node* node, enum xnn_binary_operator op, uint32_t id) {
  const bool is = node != NULL && node->type == xnn_node_type_binary_elementwise && node->binary_operator == op;
  if (!is || (node->inputs[0] != id && node->inputs[1] != id)) {
    return XNN_INVALID_VALUE_ID;
  }
  return node->inputs[node->inputs[0] == id ? 1 : 0];
}

// Finds the number that is an operand, and the other operand. Returns false if neither is a number.
static bool with_number(
    const struct xnn_subgraph* subgraph, const struct xnn_node* node, enum xnn_binary_operator op, float* number, uint32_t* id)
{
  for (uint32_t i = 0; i < 2 && node != NULL; i++) {
    const struct xnn_value* value = &subgraph->values[node->inputs[i]];
    const bool is_number = value->datatype == xnn_datatype_fp32 && xnn_value_is_static(value) && value->data != NULL &&
        xnn_shape_multiply_all_dims(&value->shape) == 1;
    *id = is_number ? other_operand(node, op, node->inputs[i]) : XNN_INVALID_VALUE_ID;
    // A number with more dimensions than the other operand would add them to the result.
    if (*id != XNN_INVALID_VALUE_ID && value->shape.num_dims <= subgraph->values[*id].shape.num_dims) {
      memcpy(number, value->data, sizeof(float));
      return true;
    }
  }
  return false;
}

static bool is_positive(float number) { return number > 0.0f && number < INFINITY; }

// The nodes of a GELU but for the product that ends it, from the logistic function on, and the factors.
struct parts {
  struct xnn_node* nodes[6];
  struct xnnpack_sys_gelu factors;
};

// Finds the parts of a product of `x` with its gate.
static bool find(const struct xnn_subgraph* subgraph, uint32_t x, uint32_t gate, struct parts* parts) {
  float last = 0.0f;
  float sum = 0.0f;
  float first = 0.0f;
  uint32_t id = gate;
  struct xnn_node** nodes = parts->nodes;
  nodes[0] = xnnpack_sys_only_for_one(subgraph, id);
  if (unary(nodes[0], xnn_unary_sigmoid) == NULL) {
    return false;
  }
  nodes[1] = xnnpack_sys_only_for_one(subgraph, nodes[0]->inputs[0]);
  if (!with_number(subgraph, nodes[1], xnn_binary_multiply, &last, &id)) {
    return false;
  }
  nodes[2] = xnnpack_sys_only_for_one(subgraph, id);
  id = other_operand(nodes[2], xnn_binary_multiply, x);
  if (id == XNN_INVALID_VALUE_ID) {
    return false;
  }
  nodes[3] = xnnpack_sys_only_for_one(subgraph, id);
  if (!with_number(subgraph, nodes[3], xnn_binary_add, &sum, &id)) {
    return false;
  }
  nodes[4] = xnnpack_sys_only_for_one(subgraph, id);
  if (!with_number(subgraph, nodes[4], xnn_binary_multiply, &first, &id)) {
    return false;
  }
  nodes[5] = xnnpack_sys_only_for_one(subgraph, id);
  parts->factors = (struct xnnpack_sys_gelu) {.linear = sum * last, .cubic = first * last};
  return unary(nodes[5], xnn_unary_square) != NULL && nodes[5]->inputs[0] == x && is_positive(parts->factors.linear) &&
      is_positive(parts->factors.cubic);
}

static void join(struct xnn_subgraph* subgraph, struct xnn_node* product, uint32_t x, const struct parts* parts) {
  struct xnn_node* gelu = parts->nodes[0];
  for (size_t i = 0; i < 6; i++) {
    xnn_value_clear(&subgraph->values[parts->nodes[i]->outputs[0]]);
  }
  for (size_t i = 1; i < 6; i++) {
    xnn_node_clear(parts->nodes[i]);
  }
  memcpy(&gelu->params, &parts->factors, sizeof(parts->factors));
  gelu->inputs[0] = x;
  gelu->outputs[0] = product->outputs[0];
  gelu->create = create;
  xnn_node_clear(product);
}

void xnnpack_sys_join_gelu(xnn_subgraph_t subgraph) {
  if (xnnpack_sys_f32_gelu_config() == NULL) {
    return;
  }
  bool has_joined = false;
  for (uint32_t i = 0; i < subgraph->num_nodes; i++) {
    struct xnn_node* product = &subgraph->nodes[i];
    const bool is_product = product->type == xnn_node_type_binary_elementwise &&
        product->binary_operator == xnn_binary_multiply &&
        subgraph->values[product->outputs[0]].datatype == xnn_datatype_fp32;
    struct parts parts;
    for (uint32_t place = 0; place < 2 && is_product; place++) {
      const uint32_t x = product->inputs[place];
      if (find(subgraph, x, product->inputs[1 - place], &parts)) {
        join(subgraph, product, x, &parts);
        has_joined = true;
        break;
      }
    }
  }
  if (has_joined) {
    xnn_subgraph_analyze_consumers_and_producers(subgraph);
  }
}
