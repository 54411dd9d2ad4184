// Products of 8-bit tensors with functions of themselves, such as x * sigmoid(x), as one table of 256 integers. XNNPACK computes
// functions of 8-bit integers by such tables; its table and its microkernel for products make this one, so that results are the
// same.

#include "hooks/product_q8.h"

#include <stdbool.h>
#include <string.h>

#include "config/operators.h"
#include "hooks/graph.h"
#include "xnnpack.h"
#include "xnnpack/config.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

#define INTEGERS 256

// A product that has become part of the node of its function. Stored in place of the function's parameters, of which it has none.
struct product {
  // Quantization of the function.
  struct xnn_quantization_params factor;
  bool is_first;
};

_Static_assert(
    sizeof(struct product) <= sizeof(((struct xnn_node*) NULL)->params), "parameters have room for a product");

static const struct xnn_binary_elementwise_config* multiplication_of(enum xnn_datatype datatype) {
  switch (datatype) {
    case xnn_datatype_qint8: return xnnpack_sys_qs8_multiply_config();
    case xnn_datatype_quint8: return xnnpack_sys_qu8_multiply_config();
    default: return NULL;
  }
}

// Turns the table of a function into that of its product with its argument.
static void multiply_table(
    const struct xnn_binary_elementwise_config* config, const struct product* product,
    const struct xnn_quantization_params* argument, const struct xnn_quantization_params* output, uint8_t* table)
{
  uint8_t arguments[INTEGERS];
  uint8_t factors[INTEGERS];
  for (int i = 0; i < INTEGERS; i++) {
    arguments[i] = (uint8_t) i;
  }
  memcpy(factors, table, INTEGERS);
  union xnn_binary_uparams params;
  if (product->is_first) {
    config->init(&params, &product->factor, argument, output);
    config->op_ukernel(INTEGERS, factors, arguments, table, &params);
  } else {
    config->init(&params, argument, &product->factor, output);
    config->op_ukernel(INTEGERS, arguments, factors, table, &params);
  }
}

static enum xnn_status create(
    const struct xnn_node* node, const struct xnn_value* values, size_t num_values, struct xnn_operator_data* opdata,
    struct xnn_code_cache* code_cache, xnn_weights_cache_t weights_cache)
{
  struct product product;
  memcpy(&product, &node->params, sizeof(product));
  const struct xnn_value* input = &values[node->inputs[0]];
  const struct xnn_quantization_params argument = xnnpack_sys_quantization_of(input);
  const struct xnn_quantization_params output = xnnpack_sys_quantization_of(&values[node->outputs[0]]);
  xnn_operator_t* op = &opdata->operator_objects[0];
  const enum xnn_status status = xnn_create_unary_elementwise_nc(
      node->unary_operator, input->datatype, input->datatype, /*params=*/NULL, &argument, &product.factor, node->flags, op);
  if (status != xnn_status_success) {
    return status;
  }
  if ((*op)->lookup_table == NULL) {
    return xnn_status_unsupported_parameter;
  }
  multiply_table(multiplication_of(input->datatype), &product, &argument, &output, (*op)->lookup_table);
  return xnn_status_success;
}

// Whether XNNPACK supports a quotient of scales.
static bool is_possible(const struct xnn_value* a, const struct xnn_value* b, const struct xnn_value* output) {
  const float quotient = a->quantization.scale * b->quantization.scale / output->quantization.scale;
  return quotient >= 0x1.0p-16f && quotient < 0x1.0p+8f;
}

// Whether a node with a table computes `factor`, from the tensor that it is multiplied with, and nothing else reads it.
static bool is_function_of(
    const struct xnn_subgraph* subgraph, uint32_t factor, uint32_t argument, const struct xnn_value* output)
{
  const struct xnn_value* value = &subgraph->values[factor];
  const struct xnn_value* of = &subgraph->values[argument];
  const struct xnn_node* node = factor == argument ? NULL : xnnpack_sys_only_for_one(subgraph, factor);
  if (node == NULL) {
    return false;
  }
  const bool is_table = node->type == xnn_node_type_unary_elementwise &&
      (node->unary_operator == xnn_unary_sigmoid || node->unary_operator == xnn_unary_tanh);
  return is_table && node->inputs[0] == argument && value->datatype == of->datatype &&
      output->datatype == of->datatype && multiplication_of(of->datatype) != NULL && is_possible(of, value, output);
}

static void join(struct xnn_subgraph* subgraph, struct xnn_node* multiplication, int place) {
  const uint32_t factor = multiplication->inputs[place];
  struct xnn_node* function = &subgraph->nodes[subgraph->values[factor].producer];
  const struct product product = {.factor = xnnpack_sys_quantization_of(&subgraph->values[factor]), .is_first = place == 0};
  memcpy(&function->params, &product, sizeof(product));
  function->outputs[0] = multiplication->outputs[0];
  function->create = create;
  xnn_value_clear(&subgraph->values[factor]);
  xnn_node_clear(multiplication);
}

void xnnpack_sys_join_products(xnn_subgraph_t subgraph) {
  bool has_joined = false;
  for (uint32_t i = 0; i < subgraph->num_nodes; i++) {
    struct xnn_node* node = &subgraph->nodes[i];
    if (node->type != xnn_node_type_binary_elementwise || node->binary_operator != xnn_binary_multiply) {
      continue;
    }
    const struct xnn_value* output = &subgraph->values[node->outputs[0]];
    if (is_function_of(subgraph, node->inputs[0], node->inputs[1], output)) {
      join(subgraph, node, 0);
      has_joined = true;
    } else if (is_function_of(subgraph, node->inputs[1], node->inputs[0], output)) {
      join(subgraph, node, 1);
      has_joined = true;
    }
  }
  if (has_joined) {
    xnn_subgraph_analyze_consumers_and_producers(subgraph);
  }
}
