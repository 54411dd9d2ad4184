// Matrix products of floats with SME, see `gemm_sme.h`. A tile of weights has two vectors of channels.

#include "ukernels/gemm_f32.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SME_PRODUCT "fmopa"
#define SME_ELEMENT "s"

#include "ukernels/gemm_sme.h"

enum kind {
  // Bounds of outputs are infinite.
  UNBOUNDED,
  BOUNDED,
};

struct output {
  uint8_t* at;
  size_t row_stride;
  const union xnn_f32_minmax_params* params;
};

// A bias for each channel of a tile, followed by weights for one input after another.
static XNN_INLINE struct sme_layout layout_of(enum kind kind, size_t vector, size_t words) {
  return (struct sme_layout) {
      .channels = 2 * vector / sizeof(float), .tile_bytes = (1 + words) * 2 * vector, .word_bytes = 2 * vector,
      .output_bytes = sizeof(float)};
}

static XNN_INLINE void start_sums(
    enum kind kind, const struct output* output, const void* of_first, const void* of_further)
{
  sme_set_sums(of_first, of_further);
}

#define PREPARE_UNBOUNDED ""
#define STORE_UNBOUNDED(tile0, tile1, slice) \
  "st1w {" tile0 "h.s[w12, #" slice "]}, p1, [%[at]]\n" \
  "st1w {" tile1 "h.s[w12, #" slice "]}, p2, [%[at], x13, lsl #2]\n" \
  "add %[at], %[at], %[stride]\n"

// Maxima and minima with NaN are NaN.
#define PREPARE_BOUNDED \
  "ld1rw {z16.s}, p0/z, [%[more]]\n" \
  "ld1rw {z17.s}, p0/z, [%[more], #4]\n"
#define STORE_BOUNDED(tile0, tile1, slice) \
  "mov z0.s, p0/m, " tile0 "h.s[w12, #" slice "]\n" \
  "mov z1.s, p0/m, " tile1 "h.s[w12, #" slice "]\n" \
  "fmax z0.s, p0/m, z0.s, z16.s\n" \
  "fmax z1.s, p0/m, z1.s, z16.s\n" \
  "fmin z0.s, p0/m, z0.s, z17.s\n" \
  "fmin z1.s, p0/m, z1.s, z17.s\n" \
  "st1w {z0.s}, p1, [%[at]]\n" \
  "st1w {z1.s}, p2, [%[at], #1, mul vl]\n" \
  "add %[at], %[at], %[stride]\n"

#define STORE_ROWS(kind) \
  if (sums->are_first) { \
    SME_FOR_ROWS(PREPARE_##kind, STORE_##kind, "za0", "za1", params, [stride] "r"(output->row_stride)); \
  } else { \
    SME_FOR_ROWS(PREPARE_##kind, STORE_##kind, "za2", "za3", params, [stride] "r"(output->row_stride)); \
  }

static XNN_INLINE void store_rows(
    enum kind kind, const struct output* output, const struct sme_sums* sums, uint8_t* at)
{
  const union xnn_f32_minmax_params* params = output->params;
  const size_t channels = sums->channels;
  size_t rows = sums->rows;
  if (kind == UNBOUNDED) {
    STORE_ROWS(UNBOUNDED)
  } else {
    STORE_ROWS(BOUNDED)
  }
}

#include "ukernels/gemm_sme_tiles.h"

static XNN_INLINE bool is_unbounded(const union xnn_f32_minmax_params* params) {
  const uint32_t infinite = UINT32_C(0x7F800000);
  uint32_t bounds[2];
  memcpy(bounds, params, sizeof(bounds));
  return bounds[0] == (UINT32_C(1) << 31 | infinite) && bounds[1] == infinite;
}

// Outputs of neighbouring tiles are neighbours.
#define ASSERT_TILES assert(cn_stride == sme_side_of(xnnpack_sys_sme_bytes()) * sizeof(float))

static void multiply(const struct sme_input* input, size_t nc, const float* weights, const struct output* output) {
  if (is_unbounded(output->params)) {
    compute(UNBOUNDED, input, nc, weights, output);
  } else {
    compute(BOUNDED, input, nc, weights, output);
  }
}

F32_GEMM(xnnpack_sys_f32_gemm_minmax_ukernel__sme) {
  ASSERT_GEMM(SME_MAX_ROWS, sizeof(float));
  ASSERT_TILES;
  if (!sme_is_usable()) {
    xnnpack_sys_f32_gemm_minmax_ukernel_rows__sme(mr, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params);
    return;
  }
  const struct sme_input input = {
      .first = a, .stride = a_stride, .rows = mr, .positions = 1, .words = kc / sizeof(float)};
  const struct output output = {.at = (uint8_t*) c, .row_stride = cm_stride, .params = params};
  multiply(&input, nc, w, &output);
}

F32_IGEMM(xnnpack_sys_f32_igemm_minmax_ukernel__sme) {
  const size_t tile_rows = sme_side_of(xnnpack_sys_sme_bytes());
  ASSERT_IGEMM(tile_rows, sizeof(float));
  ASSERT_TILES;
  if (!sme_is_usable()) {
    xnnpack_sys_f32_igemm_minmax_ukernel_rows__sme(
        mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params);
    return;
  }
  const struct sme_input input = {
      .places = (const void* const*) a, .places_of_position = tile_rows, .offset = a_offset, .zero = zero,
      .padding = zero, .rows = mr, .positions = ks / (tile_rows * sizeof(void*)), .words = kc / sizeof(float)};
  const struct output output = {.at = (uint8_t*) c, .row_stride = cm_stride, .params = params};
  multiply(&input, nc, w, &output);
}
