// GELU with tanh as one node. XNNPACK has no function for it, so that graphs have its parts,
// x * sigmoid(((x^2 * a + b) * x) * c), which read and write seven tensors. Results differ in the last bits.
//
// Between conversions from and to 8-bit integers it becomes a table of 256 integers, which is the same on all processors.

#include "hooks/gelu.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
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

// Returns the GELU of an integer, rounded to nearest.
static int32_t integer_gelu(
    int32_t integer, const struct xnnpack_sys_gelu* factors, const struct xnn_quantization_params* input,
    const struct xnn_quantization_params* output, int32_t min, int32_t max)
{
  const double x = (double) (integer - input->zero_point) * (double) input->scale;
  const double y = x / (1.0 + exp(-((double) factors->linear + (double) factors->cubic * x * x) * x));
  const double result = rint(y / (double) output->scale) + output->zero_point;
  return (int32_t) fmin(fmax(result, min), max);
}

static enum xnn_status create_table(
    const struct xnn_node* node, const struct xnn_value* values, size_t num_values, struct xnn_operator_data* opdata,
    struct xnn_code_cache* code_cache, xnn_weights_cache_t weights_cache)
{
  struct xnnpack_sys_gelu factors;
  memcpy(&factors, &node->params, sizeof(factors));
  const enum xnn_datatype datatype = values[node->inputs[0]].datatype;
  const struct xnn_quantization_params input = xnnpack_sys_quantization_of(&values[node->inputs[0]]);
  const struct xnn_quantization_params output = xnnpack_sys_quantization_of(&values[node->outputs[0]]);
  xnn_operator_t* op = &opdata->operator_objects[0];
  const enum xnn_status status = xnn_create_unary_elementwise_nc(
      xnn_unary_sigmoid, datatype, datatype, /*params=*/NULL, &input, &output, node->flags, op);
  if (status != xnn_status_success) {
    return status;
  }
  if ((*op)->lookup_table == NULL) {
    return xnn_status_unsupported_parameter;
  }
  uint8_t* table = (*op)->lookup_table;
  const bool is_signed = datatype == xnn_datatype_qint8;
  const int32_t min = is_signed ? INT8_MIN : 0;
  const int32_t max = is_signed ? INT8_MAX : UINT8_MAX;
  for (int32_t integer = min; integer <= max; integer++) {
    table[(uint8_t) integer] = (uint8_t) integer_gelu(integer, &factors, &input, &output, min, max);
  }
  return xnn_status_success;
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

// Makes the node of the logistic function that of a GELU of `input`.
static void join(
    struct xnn_subgraph* subgraph, uint32_t input, uint32_t output, const struct parts* parts, xnn_create_operator_fn create_gelu)
{
  struct xnn_node* gelu = parts->nodes[0];
  for (size_t i = 0; i < 6; i++) {
    xnn_value_clear(&subgraph->values[parts->nodes[i]->outputs[0]]);
  }
  for (size_t i = 1; i < 6; i++) {
    xnn_node_clear(parts->nodes[i]);
  }
  memcpy(&gelu->params, &parts->factors, sizeof(parts->factors));
  gelu->inputs[0] = input;
  gelu->outputs[0] = output;
  gelu->create = create_gelu;
}

// Joins a GELU of `x` and conversions before and behind it. Returns false if there are none.
static bool join_integers(struct xnn_subgraph* subgraph, struct xnn_node* product, uint32_t x, const struct parts* parts) {
  // A square, a product in the gate, and that with the gate.
  enum { READERS = 3 };
  const uint32_t y = product->outputs[0];
  struct xnn_node* before = xnnpack_sys_only_for(subgraph, x, READERS);
  if (xnnpack_sys_only_for(subgraph, y, 1) == NULL || unary(before, xnn_unary_convert) == NULL) {
    return false;
  }
  struct xnn_node* behind = &subgraph->nodes[subgraph->values[y].first_consumer];
  const enum xnn_datatype datatype = subgraph->values[before->inputs[0]].datatype;
  const bool is_q8 = datatype == xnn_datatype_qint8 || datatype == xnn_datatype_quint8;
  if (!is_q8 || unary(behind, xnn_unary_convert) == NULL || subgraph->values[behind->outputs[0]].datatype != datatype) {
    return false;
  }
  join(subgraph, before->inputs[0], behind->outputs[0], parts, create_table);
  xnn_value_clear(&subgraph->values[x]);
  xnn_value_clear(&subgraph->values[y]);
  xnn_node_clear(before);
  xnn_node_clear(behind);
  xnn_node_clear(product);
  return true;
}

// Joins a GELU of floats. Returns false if this processor has no microkernel.
static bool join_floats(struct xnn_subgraph* subgraph, struct xnn_node* product, uint32_t x, const struct parts* parts) {
  if (xnnpack_sys_f32_gelu_config() == NULL) {
    return false;
  }
  join(subgraph, x, product->outputs[0], parts, create);
  xnn_node_clear(product);
  return true;
}

void xnnpack_sys_join_gelu(xnn_subgraph_t subgraph) {
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
        has_joined |= join_integers(subgraph, product, x, &parts) || join_floats(subgraph, product, x, &parts);
        break;
      }
    }
  }
  if (has_joined) {
    xnn_subgraph_analyze_consumers_and_producers(subgraph);
  }
}
