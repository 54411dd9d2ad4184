// Microkernels for matrix products of 8-bit integers, see `gemm_q8.c`.

#ifndef XNNPACK_SYS_GEMM_Q8_H
#define XNNPACK_SYS_GEMM_Q8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/math.h"
#include "xnnpack/microparams.h"
#include "xnnpack/pack.h"

// The tile: rows of the input and channels of the output that are computed at once, and inputs that one instruction multiplies.
#define Q8_GEMM_ROWS 7
#define Q8_GEMM_CHANNELS 32
#define Q8_GEMM_LOG2_DEPTH 2

#define Q8_GEMM(name, byte, params_type) \
  void name( \
      size_t mr, size_t nc, size_t kc, const byte* a, size_t a_stride, const void* w, byte* c, size_t cm_stride, \
      size_t cn_stride, const union params_type* params)

#define Q8_IGEMM(name, byte, params_type) \
  void name( \
      size_t mr, size_t nc, size_t kc, size_t ks, const byte** a, const void* w, byte* c, size_t cm_stride, \
      size_t cn_stride, size_t a_offset, const byte* zero, const union params_type* params)

#define QU8_GEMM(name) Q8_GEMM(name, uint8_t, xnn_qu8_conv_minmax_params)
#define QU8_IGEMM(name) Q8_IGEMM(name, uint8_t, xnn_qu8_conv_minmax_params)
#define QS8_GEMM(name) Q8_GEMM(name, int8_t, xnn_qs8_qc8w_conv_minmax_params)
#define QS8_IGEMM(name) Q8_IGEMM(name, int8_t, xnn_qs8_qc8w_conv_minmax_params)

// uint8, with one scale and one zero point for all weights. These and the following: AVX512 with VNNI.
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_1x32c4__avx512vnni);
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_7x32c4__avx512vnni);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_1x32c4__avx512vnni);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_7x32c4__avx512vnni);

// int8, with a scale for each channel. Weights are packed with 128 added, or, if a position has few inputs, for inputs with 128 added
// (as by `xnn_pack_qs8_to_qu8_*`): up to 16, adding takes less time than summing, for up to 100 channels also where additions replace
// products.
#define QS8_OFFSET 128
static inline bool xnnpack_sys_qs8_shifts_weights(size_t depth) { return depth > 16; }

QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_1x32c4__avx512vnni);
QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_7x32c4__avx512vnni);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_1x32c4__avx512vnni);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_7x32c4__avx512vnni);

// Microkernels with AMX (`gemm_q8_amx.c`), for up to 32 rows or the number in the name. int8
// weights are packed as they are.
#define Q8_AMX_ROWS 32
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_32x32c4__avx512amx);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_1x32c4__avx512amx);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_16x32c4__avx512amx);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_25x32c4__avx512amx);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_32x32c4__avx512amx);
QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_32x32c4__avx512amx);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_1x32c4__avx512amx);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_16x32c4__avx512amx);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_25x32c4__avx512amx);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_32x32c4__avx512amx);

// Whether VNNI computes a number of rows before AMX, whose registers take a quarter of a microsecond to wake and as long for a dozen
// inputs as for many (measured). VNNI computes one row or Q8_GEMM_ROWS, see `few_rows_q8.h`.
static inline bool xnnpack_sys_q8_amx_is_late(size_t rows, size_t inputs, size_t channels) {
  const size_t products = doz(inputs, 12) * channels;
  return rows == 1 ? products < (size_t) 1 << 18 : round_up(rows, Q8_GEMM_ROWS) * products < (size_t) 1 << 17;
}

// Packing, see `pack_q8.c`: weights of `groups` groups, each of `channels` channels, `positions` of the kernel and
// `depth` inputs; `bias` may be null. `extra_bytes` are left free behind each tile. `zero_point` is that of the inputs as they are
// multiplied, and `shift` is added to weights, without a carry.
void xnnpack_sys_pack_qs8_goki_32c4(
    size_t groups, size_t channels, size_t positions, size_t depth, const int8_t* weights, const int32_t* bias,
    void* packed, size_t extra_bytes, int32_t zero_point, uint8_t shift);
// Packs weights of one position and group, with the channels of an input after each other, and
// inputs `stride` apart. Copies single bytes.
void xnnpack_sys_pack_qs8_gio_32c4(
    size_t channels, size_t depth, size_t stride, const int8_t* weights, const int32_t* bias, void* packed,
    size_t extra_bytes, int32_t zero_point, uint8_t shift);
void xnnpack_sys_pack_qu8_goki_32c4(
    size_t groups, size_t channels, size_t positions, size_t depth, const uint8_t* weights, const int32_t* bias,
    void* packed, size_t extra_bytes, const struct xnn_qu8_packing_params* params);

// Packing of int8 weights as they are for microkernels for AMX, with XNNPACK's signatures: convolutions, and fully connected layers
// in both orders.
void xnnpack_sys_pack_amx_goki(
    size_t g, size_t nc, size_t ks, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params);
void xnnpack_sys_pack_amx_goi(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params);
void xnnpack_sys_pack_amx_gio(
    size_t g, size_t nc, size_t kc, size_t nr, size_t kr, size_t sr, size_t k_stride, const int8_t* k, const int32_t* b,
    const void* scale, void* packed_weights, size_t extra_bytes, const struct xnn_qs8_packing_params* params);

#endif
