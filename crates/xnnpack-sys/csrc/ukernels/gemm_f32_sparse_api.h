// Matrix products of floats with weights of which many are 0, see `gemm_f32_sparse.h`.

#ifndef XNNPACK_SYS_GEMM_F32_SPARSE_API_H
#define XNNPACK_SYS_GEMM_F32_SPARSE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/gemm_f32.h"
#include "xnnpack/common.h"

// Rows of a tile, and inputs that may be multiplied. Channels are packed one by one.
#define F32_SPARSE_ROWS 32
#define F32_SPARSE_INPUTS 384

F32_GEMM(xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__sse41);
F32_GEMM(xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__avx);
F32_GEMM(xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__avx2);
F32_GEMM(xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__neon);

// Packed bytes of a channel behind its bias and weights: the number of weights that are not 0, and their places, of which the rest is 0.
static XNN_INLINE size_t f32_sparse_places(size_t depth) { return (1 + depth / 2) * 2 * sizeof(uint16_t); }

// Packed bytes of a channel.
static XNN_INLINE size_t f32_sparse_stride(size_t depth) { return (1 + depth) * sizeof(float) + f32_sparse_places(depth); }

// The number of weights of a packed channel that are not 0, and behind it their places.
static XNN_INLINE uint16_t* f32_sparse_places_of(const float* channel, size_t depth) { return (uint16_t*) (channel + 1 + depth); }

// The packed channel `count` channels further on.
static XNN_INLINE float* f32_sparse_channel(const float* channel, size_t count, size_t depth) {
  return (float*) ((uintptr_t) channel + count * f32_sparse_stride(depth));
}

// Packs weights, see `pack_f32_sparse.c`; `stride` floats are between the weights of two inputs.
void xnnpack_sys_pack_f32_sparse_goi(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, const float* weights, const float* bias,
    const void* scale, float* packed, size_t extra_bytes, const void* params);
void xnnpack_sys_pack_f32_sparse_gio(
    size_t groups, size_t channels, size_t depth, size_t nr, size_t kr, size_t sr, size_t stride, const float* weights,
    const float* bias, const void* scale, float* packed, size_t extra_bytes, const void* params);

// Whether all places are of inputs that the layer has.
bool xnnpack_sys_are_places_sound(size_t channels, size_t depth, const void* packed);

#endif
