// Matrix products of single rows of floats with NEON, and weights that are packed for SME (`gemm_f32_sme.c`): an outer product with one
// row would not be faster than its weights are loaded.

#include "ukernels/gemm_f32.h"

#include <stddef.h>
#include <stdint.h>

#include <arm_neon.h>

#include "ukernels/microkernel.h"
#include "ukernels/sme.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

#define LANES 4
// Vectors of channels of a tile.
#define MAX_VECTORS (SME_MAX_ROWS / LANES)
#define UNROLL _Pragma("GCC unroll 8")

// A row of inputs at each position of a kernel: `stride` addresses apart, or a single one.
struct row {
  const float* const* places;
  size_t stride;
  size_t positions;
  // Floats of a position.
  size_t depth;
  // Added to addresses other than `zero`, in bytes.
  size_t offset;
  const float* zero;
};

// Adds the products of an input and of the channels of all vectors.
#define ADD_PRODUCTS(input, lane, weights) \
  UNROLL for (size_t i = 0; i < vectors; i++) { \
    sums[i] = vfmaq_laneq_f32(sums[i], vld1q_f32((weights) + i * LANES), input, lane); \
  }

// Computes the first `nc` channels of a tile of `vectors` vectors, a constant wherever this is inlined.
static XNN_INLINE void compute(
    size_t vectors, size_t nc, const struct row* row, const float* weights, float* to,
    const union xnn_f32_minmax_params* params)
{
  const size_t nr = vectors * LANES;
  float32x4_t sums[MAX_VECTORS];
  UNROLL for (size_t i = 0; i < vectors; i++) {
    sums[i] = vld1q_f32(weights + i * LANES);
  }
  weights += nr;
  for (size_t position = 0; position < row->positions; position++) {
    const float* from = input_at(row->places[position * row->stride], row->zero, row->offset);
    size_t left = row->depth;
    for (; left >= LANES; left -= LANES) {
      const float32x4_t inputs = vld1q_f32(from);
      from += LANES;
      ADD_PRODUCTS(inputs, 0, weights);
      ADD_PRODUCTS(inputs, 1, weights + nr);
      ADD_PRODUCTS(inputs, 2, weights + 2 * nr);
      ADD_PRODUCTS(inputs, 3, weights + 3 * nr);
      weights += LANES * nr;
    }
    for (; left > 0; left--) {
      const float32x4_t input = vld1q_dup_f32(from++);
      ADD_PRODUCTS(input, 0, weights);
      weights += nr;
    }
  }
  const float32x4_t least = vld1q_dup_f32(&params->scalar.min);
  const float32x4_t most = vld1q_dup_f32(&params->scalar.max);
  float results[MAX_VECTORS * LANES];
  float* at = nc < nr ? results : to;
  UNROLL for (size_t i = 0; i < vectors; i++) {
    vst1q_f32(at + i * LANES, vminq_f32(vmaxq_f32(sums[i], least), most));
  }
  if (at == results) {
    for (size_t i = 0; i < nc; i++) {
      to[i] = results[i];
    }
  }
}

static void compute_row(
    size_t nc, const struct row* row, const float* weights, float* to, size_t tile_stride,
    const union xnn_f32_minmax_params* params)
{
  const size_t nr = sme_side_of(xnnpack_sys_sme_bytes());
  const size_t stride = nr * (1 + row->positions * row->depth);
  for (size_t channels; nc > 0; nc -= channels) {
    channels = min(nc, nr);
    if (nr == 2 * LANES) {
      compute(2, channels, row, weights, to, params);
    } else if (nr == 4 * LANES) {
      compute(4, channels, row, weights, to, params);
    } else {
      compute(MAX_VECTORS, channels, row, weights, to, params);
    }
    weights += stride;
    to = (float*) ((uintptr_t) to + tile_stride);
  }
}

F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel_rows__sme) {
  ASSERT_GEMM(SME_MAX_ROWS, sizeof(float));
  for (; mr > 0; mr--) {
    const struct row row = {.places = &a, .positions = 1, .depth = kc / sizeof(float)};
    compute_row(nc, &row, w, c, cn_stride, params);
    a = (const float*) ((uintptr_t) a + a_stride);
    c = (float*) ((uintptr_t) c + cm_stride);
  }
}

static XNN_INLINE void convolve(
    size_t tile_rows, size_t mr, size_t nc, size_t kc, size_t ks, const float** a, const float* w, float* c,
    size_t cm_stride, size_t cn_stride, size_t a_offset, const float* zero, const union xnn_f32_minmax_params* params)
{
  ASSERT_IGEMM(tile_rows, sizeof(float));
  for (size_t i = 0; i < mr; i++) {
    const struct row row = {
        .places = a + i, .stride = tile_rows, .positions = ks / (tile_rows * sizeof(void*)),
        .depth = kc / sizeof(float), .offset = a_offset, .zero = zero};
    compute_row(nc, &row, w, c, cn_stride, params);
    c = (float*) ((uintptr_t) c + cm_stride);
  }
}

F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_1__sme) {
  convolve(1, mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params);
}

F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel_rows__sme) {
  const size_t tile_rows = sme_side_of(xnnpack_sys_sme_bytes());
  convolve(tile_rows, mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params);
}
