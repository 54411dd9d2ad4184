// Optimizations of graphs beyond XNNPACK's own.

#include "hooks/gelu.h"
#include "hooks/matmul_q8.h"
#include "hooks/pool_images.h"
#include "hooks/product_q8.h"
#include "hooks/quantize_qd8.h"
#include "hooks/run.h"
#include "xnnpack.h"
#include "xnnpack/subgraph.h"

enum xnn_status xnnpack_sys_optimize_subgraph(xnn_subgraph_t subgraph, uint32_t flags) {
  const enum xnn_status status = xnn_subgraph_optimize(subgraph, flags);
  if (status == xnn_status_success) {
    // Each of these looks for readers and writers of values, and analyzes them again if it changes nodes.
    xnn_subgraph_analyze_consumers_and_producers(subgraph);
    xnnpack_sys_join_products(subgraph);
    xnnpack_sys_join_gelu(subgraph);
    xnnpack_sys_negate_in_poolings(subgraph);
    xnnpack_sys_multiply_integers(subgraph);
    xnnpack_sys_mark_unsigned_images(subgraph);
  }
  return status;
}
