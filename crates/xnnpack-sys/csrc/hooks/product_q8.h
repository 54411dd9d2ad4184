// Products of 8-bit tensors with functions of themselves, see `product_q8.c`.

#ifndef XNNPACK_SYS_PRODUCT_Q8_H
#define XNNPACK_SYS_PRODUCT_Q8_H

#include "xnnpack.h"

// Joins a function and its product with its argument to one node.
void xnnpack_sys_join_products(xnn_subgraph_t subgraph);

#endif
