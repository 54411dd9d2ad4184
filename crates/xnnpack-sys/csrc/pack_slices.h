// Put before files of XNNPACK that pack weights for matrix products: large weights are packed some output channels at a time,
// and whoever listens is told when each slice has been read. Weights in a mapped file then need not be in memory as a whole
// beside what they are packed into.

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

// The first slice of `whole`, which has all channels; `tile` of them lie together when they are packed.
struct xnnpack_sys_slice xnnpack_sys_first_slice(size_t groups, size_t tile, struct xnnpack_sys_slice whole);

// Tells that a slice has been packed, and goes on to the next one, which has no channels at the end.
void xnnpack_sys_next_slice(struct xnnpack_sys_slice* slice);

// What a function packs, called in the middle of XNNPACK's, which has names for the sizes of elements and of packed rows.
#define XNNPACK_SYS_SLICES(groups, outputs, positions, inputs, tile, from, added, to) \
  for (struct xnnpack_sys_slice slice = xnnpack_sys_first_slice( \
           groups, tile, \
           (struct xnnpack_sys_slice) { \
               .channels = (outputs), \
               .kernel = (from), \
               .bias = (added), \
               .packed = (to), \
               .kernel_bytes = XNNPACK_SYS_KERNEL_BYTES((positions) * (inputs)), \
               .bias_bytes = bias_element_size, \
               .packed_bytes = XNNPACK_SYS_PACKED_BYTES(positions), \
           }); \
       slice.channels != 0; xnnpack_sys_next_slice(&slice))

#define pack_gemm_goi_w(groups, outputs, inputs, nr, kr, sr, from, added, scale, to, extra, params) \
  XNNPACK_SYS_SLICES(groups, outputs, 1, inputs, nr, from, added, to) \
  (pack_gemm_goi_w)( \
      groups, slice.channels, inputs, nr, kr, sr, slice.kernel, slice.bias, scale, slice.packed, extra, params)

#define pack_conv_goki_w(groups, outputs, positions, inputs, nr, kr, sr, from, added, scale, to, extra, params) \
  XNNPACK_SYS_SLICES(groups, outputs, positions, inputs, nr, from, added, to) \
  (pack_conv_goki_w)( \
      groups, slice.channels, positions, inputs, nr, kr, sr, slice.kernel, slice.bias, scale, slice.packed, extra, params)

#if XNNPACK_SYS_CREATES == XNNPACK_SYS_FULLY_CONNECTED
#define XNNPACK_SYS_IS_NIBBLE filter_is_nibble
#define XNNPACK_SYS_PACKED_BYTES(positions) weights_stride
#else
#define XNNPACK_SYS_IS_NIBBLE 0
#define XNNPACK_SYS_PACKED_BYTES(positions) \
  ((positions) * k_stride << log2_filter_element_size) + bias_element_size + extra_weights_bytes
#endif

// 0 where elements have another size before they are packed.
#define XNNPACK_SYS_KERNEL_BYTES(elements) \
  (XNNPACK_SYS_IS_NIBBLE || flags & XNN_FLAG_FP32_STATIC_WEIGHTS ? 0 : (elements) << log2_filter_element_size)

#endif
