// Matrix products of two computed 8-bit tensors. XNNPACK has none: tensors are converted to floats, multiplied and converted back.
//
// With the tensors' scales, floats round each operand, product and sum, so that the result depends on the order of additions and on fused
// multiplications, and so on the processor. Here the operands are the integers without their zero points, and the conversion of the
// result has all scales. Floats represent these products and their sums exactly: up to 2^24, which takes at least 258 products.

#include "hooks/matmul_q8.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "xnnpack.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

// Creates a conversion with a scale that is stored in place of parameters, of which conversions have none.
static enum xnn_status create(
    const struct xnn_node* node, const struct xnn_value* values, size_t num_values, struct xnn_operator_data* opdata,
    struct xnn_code_cache* code_cache, xnn_weights_cache_t weights_cache)
{
  const struct xnn_value* input = &values[node->inputs[0]];
  const struct xnn_value* output = &values[node->outputs[0]];
  const struct xnn_value* integers = input->datatype == xnn_datatype_fp32 ? output : input;
  struct xnn_quantization_params quantization = {.zero_point = integers->quantization.zero_point};
  memcpy(&quantization.scale, &node->params, sizeof(quantization.scale));
  return xnn_create_unary_elementwise_nc(
      xnn_unary_convert, input->datatype, output->datatype, /*params=*/NULL, &quantization, &quantization, node->flags,
      &opdata->operator_objects[0]);
}

static void set_scale(struct xnn_node* conversion, float scale) {
  memcpy(&conversion->params, &scale, sizeof(scale));
  conversion->create = create;
}

static bool is_q8(const struct xnn_value* value) {
  return value->datatype == xnn_datatype_qint8 || value->datatype == xnn_datatype_quint8;
}

// The node, if it converts a tensor from or to 8-bit integers.
static struct xnn_node* conversion_at(xnn_subgraph_t subgraph, uint32_t index) {
  if (index >= subgraph->num_nodes) {
    return NULL;
  }
  struct xnn_node* node = &subgraph->nodes[index];
  const bool converts = node->type == xnn_node_type_unary_elementwise && node->unary_operator == xnn_unary_convert;
  return converts && (is_q8(&subgraph->values[node->inputs[0]]) || is_q8(&subgraph->values[node->outputs[0]])) ? node : NULL;
}

static float scale_of(const struct xnn_subgraph* subgraph, uint32_t value) { return subgraph->values[value].quantization.scale; }

static void multiply_integers(xnn_subgraph_t subgraph, const struct xnn_node* product) {
  const struct xnn_value* a = &subgraph->values[product->inputs[0]];
  const struct xnn_value* b = &subgraph->values[product->inputs[1]];
  const struct xnn_value* sums = &subgraph->values[product->outputs[0]];
  if (a->datatype != xnn_datatype_fp32 || a->num_consumers != 1 || b->num_consumers != 1 || sums->num_consumers != 1) {
    return;
  }
  struct xnn_node* of_a = conversion_at(subgraph, a->producer);
  struct xnn_node* of_b = conversion_at(subgraph, b->producer);
  struct xnn_node* of_sums = conversion_at(subgraph, sums->first_consumer);
  if (of_a == NULL || of_b == NULL || of_sums == NULL) {
    return;
  }
  const double of_product = (double) scale_of(subgraph, of_a->inputs[0]) * (double) scale_of(subgraph, of_b->inputs[0]);
  const float scale = (float) ((double) scale_of(subgraph, of_sums->outputs[0]) / of_product);
  // XNNPACK multiplies by the reciprocal.
  if (isnormal(scale) && isnormal(1.0f / scale)) {
    set_scale(of_a, 1.0f);
    set_scale(of_b, 1.0f);
    set_scale(of_sums, scale);
  }
}

void xnnpack_sys_multiply_integers(xnn_subgraph_t subgraph) {
  for (uint32_t i = 0; i < subgraph->num_nodes; i++) {
    if (subgraph->nodes[i].type == xnn_node_type_batch_matrix_multiply) {
      multiply_integers(subgraph, &subgraph->nodes[i]);
    }
  }
}
