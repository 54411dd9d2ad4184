// Products of 8-bit tensors with functions of themselves, see `product_q8.c`.

#ifndef XNNPACK_SYS_PRODUCT_Q8_H
#define XNNPACK_SYS_PRODUCT_Q8_H

#include "xnnpack.h"

// Makes one node of a function and a product with what it is of.
void xnnpack_sys_join_products(xnn_subgraph_t subgraph);

#endif
