// Maximum poolings whose windows are whole images, such as reductions.

#ifndef XNNPACK_SYS_HOOK_POOL_IMAGES_H
#define XNNPACK_SYS_HOOK_POOL_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/operator.h"

// Called at the end of reshaping. If the windows of the pooling are neighbouring parts of memory, and this processor has a microkernel for
// such images, replaces the function that computes it.
void xnnpack_sys_pool_images(xnn_operator_t op, size_t batch_size, uint32_t log2_element_size);

#endif
