// Functions of two operands, one of which is a row that is repeated, such as a number for each channel.

#ifndef XNNPACK_SYS_JOIN_ROWS_H
#define XNNPACK_SYS_JOIN_ROWS_H

#include <stddef.h>

#include "xnnpack/operator.h"

// Called when the operator was reshaped to compute row by row. If rows are short and one operand has just one row, replaces the function
// that computes them.
void xnnpack_sys_join_rows(xnn_operator_t op, size_t threads);

#endif
