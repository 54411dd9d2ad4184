// What is done to graphs besides XNNPACK's own optimizations, when they are compiled.

#include "product_q8.h"
#include "quantize_qd8.h"
#include "xnnpack.h"
#include "xnnpack/subgraph.h"

// XNNPACK calls it in the place of `xnn_subgraph_optimize`.
enum xnn_status xnnpack_sys_optimize_subgraph(xnn_subgraph_t subgraph, uint32_t flags);

enum xnn_status xnnpack_sys_optimize_subgraph(xnn_subgraph_t subgraph, uint32_t flags) {
  const enum xnn_status status = xnn_subgraph_optimize(subgraph, flags);
  if (status == xnn_status_success) {
    xnnpack_sys_join_products(subgraph);
    xnnpack_sys_mark_unsigned_images(subgraph);
  }
  return status;
}
