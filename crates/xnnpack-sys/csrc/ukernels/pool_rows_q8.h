// Maximum of a row of 8-bit integers, see `pool_rows_q8.c`.

#ifndef XNNPACK_SYS_POOL_ROWS_Q8_H
#define XNNPACK_SYS_POOL_ROWS_Q8_H

#include "ukernels/pool_q8.h"

// Windows of any size.
S8_MAXPOOL(xnnpack_sys_s8_maxpool_minmax_ukernel__rows);
U8_MAXPOOL(xnnpack_sys_u8_maxpool_minmax_ukernel__rows);

#endif
