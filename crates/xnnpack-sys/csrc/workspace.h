// Put before XNNPACK's `runtime.c`: zeros for intermediate tensors, see `workspace.c`.

#ifndef XNNPACK_SYS_WORKSPACE_H
#define XNNPACK_SYS_WORKSPACE_H

// As the file has it, before what it is for.
#define _POSIX_C_SOURCE 199309L

#include <stddef.h>

#include "xnnpack/allocator.h"

// As `xnn_allocate_zero_simd_memory`, which has been compiled by now.
void* xnnpack_sys_allocate_zeros(size_t size);

#define xnn_allocate_zero_simd_memory xnnpack_sys_allocate_zeros

#endif
