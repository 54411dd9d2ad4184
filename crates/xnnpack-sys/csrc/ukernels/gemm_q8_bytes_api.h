// Microkernels for matrix products of 8-bit integers without VNNI, see `gemm_q8_bytes.h`.

#ifndef XNNPACK_SYS_GEMM_Q8_BYTES_API_H
#define XNNPACK_SYS_GEMM_Q8_BYTES_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/gemm_q8.h"
#include "ukernels/gemm_qd8.h"
#include "xnnpack/math.h"

// Inputs of a step.
#define Q8_BYTES_LOG2_DEPTH 2
#define Q8_BYTES_DEPTH (1 << Q8_BYTES_LOG2_DEPTH)

// Tiles with SSE4.1 and AVX, with AVX2 and AVX-VNNI, and with AVX512.
#define Q8_SSE41_ROWS 4
#define Q8_SSE41_CHANNELS 8
#define Q8_AVX2_ROWS 4
#define Q8_AVX2_CHANNELS 16
#define Q8_AVX512_ROWS 8
#define Q8_AVX512_CHANNELS 32

// Inputs of a row that are in the microkernels' buffer at once. The buffer is on the stack, of which threads have 128 kB with some C
// libraries.
#define Q8_BYTES_BLOCK(tile) ((tile) == Q8_AVX512_CHANNELS ? 2048 : 4096)

// Most inputs of a row that are in the buffer in several orders. Five forms of all rows fit into the first-level cache, of 32 kB on many
// processors.
#define Q8_BYTES_PAIRED(tile) ((tile) == Q8_AVX512_CHANNELS ? 768 : 1280)

// Vectors of a tile.
#define Q8_BYTES_VECTORS 2

// Steps of a position, from `first` on and before `end`.
struct q8_bytes_steps {
  uint16_t first;
  uint16_t end;
};

// The order of a block's steps behind a tile's weights: first `wide` steps of the form WIDE, then `signs` of SIGNS. `places` are the
// bytes at which the inputs of each step are in a row of the buffer.
struct q8_bytes_order {
  uint16_t wide;
  uint16_t signs;
  // 1 if the buffer must have inputs in the order of each pairing.
  uint16_t paired;
  // 1 if inputs need no buffer: all steps are SIGNS in their order, and for each vector some of a position have weights other than 0.
  uint16_t direct;
  struct q8_bytes_steps nonzero[Q8_BYTES_VECTORS];
  uint16_t places[];
};

// Bytes behind a tile's weights and scales: a correction of each channel's bias, and the order of steps. As many for each of `tile`
// channels.
static inline size_t xnnpack_sys_q8_order_size(size_t tile, size_t depth) {
  const size_t blocks = divide_round_up(depth, Q8_BYTES_BLOCK(tile));
  const size_t order = blocks * sizeof(struct q8_bytes_order) + depth / Q8_BYTES_DEPTH * sizeof(uint16_t);
  return tile * sizeof(int32_t) + round_up(order, tile * sizeof(int32_t));
}

// Prepares weights that were packed as by `xnn_pack_qs8_to_qu8_conv_goki_w`, `xnn_pack_qs8_conv_goki_w` for inputs quantized at run
// time, or `xnn_pack_qu8_conv_goki_w`, in tiles of the instruction set. `depth` is that of all `positions`, each padded to whole steps;
// `extra_bytes` end with those of `xnnpack_sys_q8_order_size`.
typedef void xnnpack_sys_sort_q8_fn(
    bool is_unsigned, size_t groups, size_t channels, size_t positions, size_t depth, void* packed, size_t extra_bytes);

// Whether the orders of `tiles` tiles, which are `stride` bytes apart, name only inputs that layers have. Packed weights from a file may be
// damaged.
typedef bool xnnpack_sys_are_orders_sound_q8_fn(size_t tiles, size_t depth, const void* packed, size_t stride);

#define SORTING_Q8(isa) \
  xnnpack_sys_sort_q8_fn xnnpack_sys_sort_q8_##isa; \
  xnnpack_sys_are_orders_sound_q8_fn xnnpack_sys_are_orders_sound_q8_##isa

SORTING_Q8(sse41);
SORTING_Q8(avx);
SORTING_Q8(avx2);
SORTING_Q8(avxvnni);
SORTING_Q8(avx512skx);

#define Q8_BYTES_MICROKERNELS(tile) \
  QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_##tile); \
  QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_##tile); \
  QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_##tile); \
  QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_##tile); \
  QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_##tile); \
  QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##tile)

Q8_BYTES_MICROKERNELS(1x8c4__sse41);
Q8_BYTES_MICROKERNELS(4x8c4__sse41);
Q8_BYTES_MICROKERNELS(1x8c4__avx);
Q8_BYTES_MICROKERNELS(4x8c4__avx);
Q8_BYTES_MICROKERNELS(1x16c4__avx2);
Q8_BYTES_MICROKERNELS(4x16c4__avx2);
Q8_BYTES_MICROKERNELS(1x16c4__avxvnni);
Q8_BYTES_MICROKERNELS(4x16c4__avxvnni);
Q8_BYTES_MICROKERNELS(1x32c4__avx512skx);
Q8_BYTES_MICROKERNELS(8x32c4__avx512skx);

// For weights as XNNPACK packs them: transposed convolutions.
#define Q8_PLAIN_MICROKERNELS(tile) \
  QU8_GEMM(xnnpack_sys_plain_qu8_gemm_minmax_ukernel_##tile); \
  QU8_IGEMM(xnnpack_sys_plain_qu8_igemm_minmax_ukernel_##tile)

Q8_PLAIN_MICROKERNELS(1x8c4__sse41);
Q8_PLAIN_MICROKERNELS(4x8c4__sse41);
Q8_PLAIN_MICROKERNELS(1x8c4__avx);
Q8_PLAIN_MICROKERNELS(4x8c4__avx);
Q8_PLAIN_MICROKERNELS(1x16c4__avx2);
Q8_PLAIN_MICROKERNELS(4x16c4__avx2);
Q8_PLAIN_MICROKERNELS(1x32c4__avx512skx);
Q8_PLAIN_MICROKERNELS(8x32c4__avx512skx);

#endif
