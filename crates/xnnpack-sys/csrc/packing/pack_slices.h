// Packing of the weights of matrix products some output channels at a time: large weights in a mapped file then need not be in
// memory as a whole beside what they are packed into, because a listener is told when each slice has been read.

#ifndef XNNPACK_SYS_PACK_SLICES_H
#define XNNPACK_SYS_PACK_SLICES_H

#include <stddef.h>

// Output channels that are packed at once. Bytes are those of one channel.
struct xnnpack_sys_slice {
  size_t channels;
  const void* kernel;
  const void* bias;
  void* packed;
  size_t kernel_bytes;
  size_t bias_bytes;
  size_t packed_bytes;
  // Channels behind this slice.
  size_t left;
};

// Returns the first slice of `whole`, which has all channels; `tile` of them lie together when they are packed.
struct xnnpack_sys_slice xnnpack_sys_first_slice(size_t groups, size_t tile, struct xnnpack_sys_slice whole);

// Tells the listener that a slice has been packed, and moves on to the next one. The one behind the last has no channels.
void xnnpack_sys_next_slice(struct xnnpack_sys_slice* slice);

#endif
