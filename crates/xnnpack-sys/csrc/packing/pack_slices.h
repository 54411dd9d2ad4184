// Packing of the weights of matrix products some output channels at a time, for two reasons. Threads share the work of large
// weights, and large weights in a mapped file need not be in memory as a whole beside what they are packed into, because a listener
// is told when each slice has been read.

#ifndef XNNPACK_SYS_PACK_SLICES_H
#define XNNPACK_SYS_PACK_SLICES_H

#include <stddef.h>

#include "xnnpack/microfnptr.h"

// Weights of an operator, and how to pack them.
struct xnnpack_sys_weights {
  // Packs matrices.
  xnn_packw_gemm_goi_ukernel_fn pack_gemm;
  // Packs kernels with several positions. NULL: the weights are a matrix.
  xnn_pack_conv_goki_w_fn pack_conv;
  size_t groups;
  // Output channels, positions of the kernel, and input channels of a group.
  size_t channels;
  size_t positions;
  size_t depth;
  size_t nr;
  size_t kr;
  size_t sr;
  const void* kernel;
  const void* bias;
  void* packed;
  // Bytes behind each packed tile.
  size_t extra_bytes;
  const void* params;
  // Bytes of an output channel; 0 if weights have another size before they are packed.
  size_t kernel_bytes;
  size_t bias_bytes;
  size_t packed_bytes;
};

// Packs all weights, on the threads of the pool if there is one.
void xnnpack_sys_pack(const struct xnnpack_sys_weights* weights);

#endif
