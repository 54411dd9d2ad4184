// Matrix products of two computed 8-bit tensors, see `matmul_q8.c`.

#ifndef XNNPACK_SYS_MATMUL_Q8_H
#define XNNPACK_SYS_MATMUL_Q8_H

#include "xnnpack.h"

// Moves the scales of operands that are converted to floats behind the product.
void xnnpack_sys_multiply_integers(xnn_subgraph_t subgraph);

#endif
