// GELU with tanh, see `gelu.c`.

#ifndef XNNPACK_SYS_HOOK_GELU_H
#define XNNPACK_SYS_HOOK_GELU_H

#include "xnnpack.h"

// Joins the nodes of a GELU to one node.
void xnnpack_sys_join_gelu(xnn_subgraph_t subgraph);

#endif
