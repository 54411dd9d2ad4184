// Zeros for intermediate tensors, see `workspace.c`.

#ifndef XNNPACK_SYS_WORKSPACE_H
#define XNNPACK_SYS_WORKSPACE_H

#include <stddef.h>

// As `xnn_allocate_zero_simd_memory`.
void* xnnpack_sys_allocate_zeros(size_t size);

#endif
