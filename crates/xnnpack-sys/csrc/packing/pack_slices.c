// Packing of weights some output channels at a time, see `pack_slices.h`.

#include "packing/pack_slices.h"

#include <stdint.h>

// Bytes that are read before the listener is called. The system reads files 64 kB at a time; with much smaller slices a good part
// would be read twice.
#define SLICE ((size_t) 1 << 18)

typedef void (*packed_fn)(void* context, const void* weights, size_t size);

// The listener of this thread, set for the time in which it creates a runtime. Slices cannot pass it on: XNNPACK's functions between
// the creation of a runtime and packing have no argument for it.
static __thread packed_fn told;
static __thread void* told_context;

void xnnpack_sys_tell_packed(packed_fn packed, void* context);

void xnnpack_sys_tell_packed(packed_fn packed, void* context) {
  told = packed;
  told_context = context;
}

struct xnnpack_sys_slice xnnpack_sys_first_slice(size_t groups, size_t tile, struct xnnpack_sys_slice whole) {
  const size_t tile_bytes = tile * whole.kernel_bytes;
  struct xnnpack_sys_slice first = whole;
  if (told != NULL && groups == 1 && tile_bytes != 0) {
    const size_t most = tile_bytes < SLICE ? SLICE / tile_bytes * tile : tile;
    first.channels = most < whole.channels ? most : whole.channels;
    first.left = whole.channels - first.channels;
  }
  return first;
}

void xnnpack_sys_next_slice(struct xnnpack_sys_slice* slice) {
  const size_t done = slice->channels;
  // The weights cache reports the last slice together with all weights.
  if (slice->left == 0) {
    slice->channels = 0;
    return;
  }
  // There are other slices only if there is a listener.
  told(told_context, slice->kernel, done * slice->kernel_bytes);
  slice->kernel = (const char*) slice->kernel + done * slice->kernel_bytes;
  slice->packed = (char*) slice->packed + done * slice->packed_bytes;
  if (slice->bias != NULL) {
    slice->bias = (const char*) slice->bias + done * slice->bias_bytes;
  }
  slice->channels = done < slice->left ? done : slice->left;
  slice->left -= slice->channels;
}
