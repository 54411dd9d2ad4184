// Softmax of short rows.

#ifndef XNNPACK_SYS_HOOKS_SOFTMAX_H
#define XNNPACK_SYS_HOOKS_SOFTMAX_H

#include <stdint.h>

#include "xnnpack/operator.h"

// Called when the operator was reshaped. If its rows are short, replaces the function that computes them.
void xnnpack_sys_softmax_rows(xnn_operator_t op, uint32_t log2_element_size);

#endif
