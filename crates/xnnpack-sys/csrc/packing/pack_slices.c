// Packing of weights some output channels at a time, see `pack_slices.h`.

#include "packing/pack_slices.h"

#include <stdint.h>

#include "pthreadpool.h"
#include "xnnpack/math.h"

// Bytes that are packed at once: waking other threads takes longer, and the listener is called when one thread has packed as much.
// The system reads files 64 kB at a time; with much smaller slices a good part would be read twice.
#define SLICE ((size_t) 1 << 18)

// Bytes for each of several threads, which wait for each other before the listener is called.
#define LARGE_SLICE ((size_t) 1 << 20)

// Bytes that one of several threads takes at once.
#define SHARE ((size_t) 1 << 16)

typedef void (*packed_fn)(void* context, const void* weights, size_t size);

// The listener and the pool of this thread, set for the time in which it creates a runtime. XNNPACK's functions between the
// creation of a runtime and packing have no arguments for them.
static __thread packed_fn told;
static __thread void* told_context;
static __thread pthreadpool_t pool;

void xnnpack_sys_tell_packed(packed_fn packed, void* context);
void xnnpack_sys_pack_with(pthreadpool_t threads);

void xnnpack_sys_tell_packed(packed_fn packed, void* context) {
  told = packed;
  told_context = context;
}

void xnnpack_sys_pack_with(pthreadpool_t threads) { pool = threads; }

// Channels from `first` on.
struct slice {
  const struct xnnpack_sys_weights* weights;
  size_t first;
};

static void pack_channels(void* context, size_t start, size_t channels) {
  const struct slice* slice = context;
  const struct xnnpack_sys_weights* w = slice->weights;
  const size_t first = slice->first + start;
  const void* kernel = (const char*) w->kernel + first * w->kernel_bytes;
  const void* bias = w->bias != NULL ? (const char*) w->bias + first * w->bias_bytes : NULL;
  void* packed = (char*) w->packed + first * w->packed_bytes;
  if (w->pack_conv != NULL) {
    w->pack_conv(
        w->groups, channels, w->positions, w->depth, w->nr, w->kr, w->sr, kernel, bias, /*scale=*/NULL, packed, w->extra_bytes,
        w->params);
  } else {
    w->pack_gemm(
        w->groups, channels, w->depth, w->nr, w->kr, w->sr, kernel, bias, /*scale=*/NULL, packed, w->extra_bytes, w->params);
  }
}

// Channels of as many whole tiles as `bytes` bytes hold, at least one.
static size_t channels_of(const struct xnnpack_sys_weights* weights, size_t bytes) {
  return max(bytes / (weights->nr * weights->kernel_bytes), 1) * weights->nr;
}

void xnnpack_sys_pack(const struct xnnpack_sys_weights* weights) {
  struct slice slice = {.weights = weights};
  const size_t all = weights->channels;
  if (weights->groups != 1 || all * weights->kernel_bytes <= SLICE) {
    pack_channels(&slice, 0, all);
    return;
  }
  const size_t count = pthreadpool_get_threads_count(pool);
  const size_t most = told == NULL ? all : channels_of(weights, count > 1 ? LARGE_SLICE * count : SLICE);
  const size_t share = count > 1 ? channels_of(weights, SHARE) : most;
  // For the missing channels of an incomplete tile, XNNPACK's packing for NEON writes values of the tile before. The two are packed
  // together, so that the bytes do not depend on the number of threads.
  const size_t last = all % weights->nr + weights->nr;
  const size_t end = last > weights->nr && last <= all ? all - last : all;
  for (; slice.first < end; slice.first += most) {
    const size_t channels = min(end - slice.first, most);
    pthreadpool_parallelize_1d_tile_1d(pool, pack_channels, &slice, channels, share, /*flags=*/0);
    // The weights cache reports the last slice together with all weights.
    if (told != NULL && slice.first + channels < all) {
      told(told_context, (const char*) weights->kernel + slice.first * weights->kernel_bytes, channels * weights->kernel_bytes);
    }
  }
  if (end < all) {
    slice.first = end;
    pack_channels(&slice, 0, all - end);
  }
}
