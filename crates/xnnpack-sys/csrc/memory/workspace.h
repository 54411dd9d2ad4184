// Zeros for intermediate tensors, see `workspace.c`.

#ifndef XNNPACK_SYS_WORKSPACE_H
#define XNNPACK_SYS_WORKSPACE_H

#include <stddef.h>

// Allocates zeros, like `xnn_allocate_zero_simd_memory`, but does not write whole huge pages.
void* xnnpack_sys_allocate_zeros(size_t size);

#endif
