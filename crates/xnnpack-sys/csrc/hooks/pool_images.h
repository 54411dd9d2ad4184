// Maximum poolings whose windows are whole images, such as reductions.

#ifndef XNNPACK_SYS_HOOK_POOL_IMAGES_H
#define XNNPACK_SYS_HOOK_POOL_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/operator.h"

// Called at the end of reshaping. If the windows of the pooling are neighbouring parts of memory, and this processor has a microkernel for
// such images, replaces the function that computes it. Returns false if another function would compute the wrong maximum.
bool xnnpack_sys_pool_images(xnn_operator_t op, size_t batch_size, uint32_t log2_element_size);

// Makes poolings of whole images negate the elements of their inputs themselves. A minimum is the negative of their maximum.
void xnnpack_sys_negate_in_poolings(xnn_subgraph_t subgraph);

#endif
