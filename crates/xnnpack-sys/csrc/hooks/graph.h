// Questions about graphs under optimization. `xnn_subgraph_analyze_consumers_and_producers` must have been called since the last change.

#ifndef XNNPACK_SYS_GRAPH_H
#define XNNPACK_SYS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/subgraph.h"

// Returns the node that computes a value which is an operand `readers` times, and nothing outside the graph reads, or NULL.
static inline struct xnn_node* xnnpack_sys_only_for(const struct xnn_subgraph* subgraph, uint32_t id, uint32_t readers) {
  const struct xnn_value* value = &subgraph->values[id];
  const bool is_computed = xnn_value_is_internal(value) && !xnn_value_is_persistent(value) &&
      !xnn_value_is_static(value) && value->producer < subgraph->num_nodes;
  return is_computed && value->num_consumers == readers ? &subgraph->nodes[value->producer] : NULL;
}

// Returns the node that computes a value which just one node reads, and nothing outside the graph, or NULL.
static inline struct xnn_node* xnnpack_sys_only_for_one(const struct xnn_subgraph* subgraph, uint32_t id) {
  return xnnpack_sys_only_for(subgraph, id, 1);
}

static inline struct xnn_quantization_params xnnpack_sys_quantization_of(const struct xnn_value* value) {
  return (struct xnn_quantization_params) {
      .zero_point = value->quantization.zero_point, .scale = value->quantization.scale};
}

#endif
