// Questions about graphs under optimization. `xnn_subgraph_analyze_consumers_and_producers` must have been called since the last change.

#ifndef XNNPACK_SYS_GRAPH_H
#define XNNPACK_SYS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/subgraph.h"

// Returns the node that computes a value which just one node reads, and nothing outside the graph, or NULL.
static inline struct xnn_node* xnnpack_sys_only_for_one(const struct xnn_subgraph* subgraph, uint32_t id) {
  const struct xnn_value* value = &subgraph->values[id];
  const bool is_computed = xnn_value_is_internal(value) && !xnn_value_is_persistent(value) &&
      !xnn_value_is_static(value) && value->producer < subgraph->num_nodes;
  return is_computed && value->num_consumers == 1 ? &subgraph->nodes[value->producer] : NULL;
}

#endif
