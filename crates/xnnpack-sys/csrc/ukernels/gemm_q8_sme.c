// Matrix products of int8 with SME, see `gemm_sme.h`: with a scale for each channel, and of images and rows quantized at run time. Weights
// are packed as for dot products of NEON (`gemm_q8_neondot.c`), whose microkernels compute single rows: four inputs of 16 channels lie
// side by side. A vector has some of the channels of a tile or all of them; streaming modes with longer vectors do not use this.
//
// `kind` is a constant wherever functions are inlined.

#include "ukernels/q8_neon.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SME_PRODUCT "smopa"
#define SME_ELEMENT "b"

#include "ukernels/gemm_sme.h"

#define CHANNELS Q8_NEON_CHANNELS

enum kind {
  // int8 with a scale for each channel.
  SIGNED,
  // int8 images quantized at run time, with a scale for each channel; sums become floats.
  DYNAMIC,
  // int8 rows quantized at run time: as DYNAMIC, with a zero point and a scale for each row.
  DYNAMIC_ROWS,
};

struct output {
  uint8_t* at;
  size_t row_stride;
  // Bytes from the first word of a channel to its scale.
  size_t scales;
  // Bounds, and the zero point for SIGNED.
  const void* params;
  // DYNAMIC: for the image. DYNAMIC_ROWS: for each row.
  const struct xnn_qd8_quantization_params* quantization;
};

// Bytes of a word of a tile's channels.
#define BLOCK (CHANNELS * sizeof(uint32_t))

// A bias for each channel of a tile, or for DYNAMIC and DYNAMIC_ROWS the sum of its weights; words of weights; scales; for those kinds
// biases.
static XNN_INLINE struct sme_layout layout_of(enum kind kind, size_t vector, size_t words) {
  return (struct sme_layout) {
      .channels = CHANNELS, .tile_bytes = (words + (kind == SIGNED ? 2 : 3)) * BLOCK, .word_bytes = BLOCK,
      .output_bytes = kind == SIGNED ? sizeof(int8_t) : sizeof(float)};
}

// Sums of DYNAMIC_ROWS begin with products of sums of weights and zero points of rows, which are added in the end.
static XNN_INLINE void start_sums(
    enum kind kind, const struct output* output, const void* of_first, const void* of_further)
{
  if (kind == SIGNED) {
    sme_set_sums(of_first, of_further);
  } else if (kind == DYNAMIC) {
    sme_set_sums_times(of_first, of_further, &output->quantization->zero_point);
  } else {
    sme_clear();
  }
}

// Vectors 16 and 17 have scales, 18 and 19 bounds, 20 the zero point.
#define PREPARE_SIGNED \
  "ldr z16, [%[first]]\n" \
  "ldr z17, [%[further]]\n" \
  "ld1rsb {z18.s}, p0/z, [%[params], #2]\n" \
  "ld1rsb {z19.s}, p0/z, [%[params], #3]\n" \
  "ld1rsh {z20.s}, p0/z, [%[params]]\n"
#define STORE_SIGNED(tile0, tile1, slice) \
  "mov z0.s, p0/m, " tile0 "h.s[w12, #" slice "]\n" \
  "mov z1.s, p0/m, " tile1 "h.s[w12, #" slice "]\n" \
  "scvtf z0.s, p0/m, z0.s\n" \
  "scvtf z1.s, p0/m, z1.s\n" \
  "fmul z0.s, z0.s, z16.s\n" \
  "fmul z1.s, z1.s, z17.s\n" \
  "frintn z0.s, p0/m, z0.s\n" \
  "frintn z1.s, p0/m, z1.s\n" \
  "fcvtzs z0.s, p0/m, z0.s\n" \
  "fcvtzs z1.s, p0/m, z1.s\n" \
  "sqadd z0.s, z0.s, z20.s\n" \
  "sqadd z1.s, z1.s, z20.s\n" \
  "smax z0.s, p0/m, z0.s, z18.s\n" \
  "smax z1.s, p0/m, z1.s, z18.s\n" \
  "smin z0.s, p0/m, z0.s, z19.s\n" \
  "smin z1.s, p0/m, z1.s, z19.s\n" \
  "st1b {z0.s}, p1, [%[at]]\n" \
  "st1b {z1.s}, p2, [%[at], x13]\n" \
  "add %[at], %[at], %[stride]\n"

// Vectors 20 and 21 have biases, 22 the image's scale.
#define PREPARE_FLOATS \
  "ldr z16, [%[first]]\n" \
  "ldr z17, [%[further]]\n" \
  "ld1rw {z18.s}, p0/z, [%[params]]\n" \
  "ld1rw {z19.s}, p0/z, [%[params], #4]\n" \
  "add x14, %[first], #64\n" \
  "add x15, %[further], #64\n" \
  "ldr z20, [x14]\n" \
  "ldr z21, [x15]\n"
#define STORE_FLOATS \
  "fmax z0.s, p0/m, z0.s, z18.s\n" \
  "fmax z1.s, p0/m, z1.s, z18.s\n" \
  "fmin z0.s, p0/m, z0.s, z19.s\n" \
  "fmin z1.s, p0/m, z1.s, z19.s\n" \
  "st1w {z0.s}, p1, [%[at]]\n" \
  "st1w {z1.s}, p2, [%[at], #1, mul vl]\n" \
  "add %[at], %[at], %[stride]\n"

// Scales sums in the order of TFLite's reference kernels, on which the last bits depend.
#define PREPARE_DYNAMIC PREPARE_FLOATS "ld1rw {z22.s}, p0/z, [%[more], #4]\n"
#define STORE_DYNAMIC(tile0, tile1, slice) \
  "mov z0.s, p0/m, " tile0 "h.s[w12, #" slice "]\n" \
  "mov z1.s, p0/m, " tile1 "h.s[w12, #" slice "]\n" \
  "scvtf z0.s, p0/m, z0.s\n" \
  "scvtf z1.s, p0/m, z1.s\n" \
  "fmul z0.s, z0.s, z16.s\n" \
  "fmul z1.s, z1.s, z17.s\n" \
  "fmul z0.s, z0.s, z22.s\n" \
  "fmul z1.s, z1.s, z22.s\n" \
  "fadd z0.s, z0.s, z20.s\n" \
  "fadd z1.s, z1.s, z21.s\n" STORE_FLOATS

// Vectors 22 and 23 have sums of weights, 24 and 25 the zero point and the scale of a row. Rows are scaled as by XNNPACK.
#define PREPARE_DYNAMIC_ROWS \
  PREPARE_FLOATS \
  "ldr z22, [%[first_start]]\n" \
  "ldr z23, [%[further_start]]\n"
#define STORE_DYNAMIC_ROWS(tile0, tile1, slice) \
  "ld1rw {z24.s}, p0/z, [%[more]]\n" \
  "ld1rw {z25.s}, p0/z, [%[more], #4]\n" \
  "add %[more], %[more], #8\n" \
  "mov z0.s, p0/m, " tile0 "h.s[w12, #" slice "]\n" \
  "mov z1.s, p0/m, " tile1 "h.s[w12, #" slice "]\n" \
  "mla z0.s, p0/m, z22.s, z24.s\n" \
  "mla z1.s, p0/m, z23.s, z24.s\n" \
  "scvtf z0.s, p0/m, z0.s\n" \
  "scvtf z1.s, p0/m, z1.s\n" \
  "fmul z0.s, z0.s, z25.s\n" \
  "fmul z1.s, z1.s, z25.s\n" \
  "fmad z0.s, p0/m, z16.s, z20.s\n" \
  "fmad z1.s, p0/m, z17.s, z21.s\n" STORE_FLOATS

#define STORE_TILES(kind, tile0, tile1) \
  SME_FOR_ROWS( \
      PREPARE_##kind, STORE_##kind, tile0, tile1, quantization, [stride] "r"(output->row_stride), \
      [params] "r"(output->params), [first] "r"(sme_behind(sums->first, output->scales)), \
      [further] "r"(sme_behind(sums->further, output->scales)), [first_start] "r"(sums->first), \
      [further_start] "r"(sums->further))

#define STORE_ROWS(kind) \
  if (sums->are_first) { \
    STORE_TILES(kind, "za0", "za1"); \
  } else { \
    STORE_TILES(kind, "za2", "za3"); \
  }

static XNN_INLINE void store_rows(
    enum kind kind, const struct output* output, const struct sme_sums* sums, uint8_t* at)
{
  const struct xnn_qd8_quantization_params* quantization = output->quantization;
  const size_t channels = sums->channels;
  size_t rows = sums->rows;
  if (kind == SIGNED) {
    STORE_ROWS(SIGNED)
  } else if (kind == DYNAMIC) {
    STORE_ROWS(DYNAMIC)
  } else {
    quantization += sums->row;
    STORE_ROWS(DYNAMIC_ROWS)
  }
}

#include "ukernels/gemm_sme_tiles.h"

#define WORDS (divide_round_up(kc, 4))

// A product of rows.
#define ROWS \
  ((struct sme_input) {.first = a, .stride = a_stride, .rows = mr, .positions = 1, .words = WORDS})

// A product of the positions of a kernel.
#define POSITIONS(padding_at) \
  ((struct sme_input) { \
      .places = (const void* const*) a, .places_of_position = tile_rows, .offset = a_offset, .zero = zero, \
      .padding = padding_at, .rows = mr, .positions = ks / (tile_rows * sizeof(void*)), .words = WORDS})

#define OUTPUT(input, quantization_of) \
  ((struct output) { \
      .at = (uint8_t*) c, .row_stride = cm_stride, .scales = (1 + input.positions * input.words) * BLOCK, .params = params, \
      .quantization = quantization_of})

// Outputs of neighbouring tiles are neighbours.
#define ASSERT_TILES assert(cn_stride == CHANNELS * sizeof(*c))

QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_x16c4__sme) {
  ASSERT_GEMM(SME_MAX_ROWS, 1);
  ASSERT_TILES;
  if (!sme_is_usable()) {
    xnnpack_sys_qs8_gemm_minmax_ukernel_rows_x16c4__sme(mr, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params);
    return;
  }
  const struct sme_input input = ROWS;
  const struct output output = OUTPUT(input, NULL);
  compute(SIGNED, &input, nc, w, &output);
}

QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_x16c4__sme) {
  const size_t tile_rows = sme_side_of(xnnpack_sys_sme_bytes());
  ASSERT_IGEMM(tile_rows, 1);
  ASSERT_TILES;
  if (!sme_is_usable()) {
    xnnpack_sys_qs8_igemm_minmax_ukernel_rows_x16c4__sme(
        mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, params);
    return;
  }
  const struct sme_input input = POSITIONS(zero);
  const struct output output = OUTPUT(input, NULL);
  compute(SIGNED, &input, nc, w, &output);
}

QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_x16c4__sme) {
  ASSERT_GEMM(SME_MAX_ROWS, 1);
  ASSERT_TILES;
  if (!sme_is_usable()) {
    xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_rows_x16c4__sme(
        mr, nc, kc, a, a_stride, w, c, cm_stride, cn_stride, params, quantization_params);
    return;
  }
  const struct sme_input input = ROWS;
  const struct output output = OUTPUT(input, quantization_params);
  compute(DYNAMIC_ROWS, &input, nc, w, &output);
}

QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_x16c4__sme) {
  const size_t tile_rows = sme_side_of(xnnpack_sys_sme_bytes());
  ASSERT_IGEMM(tile_rows, 1);
  ASSERT_TILES;
  if (!sme_is_usable()) {
    xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_rows_x16c4__sme(
        mr, nc, kc, ks, a, w, c, cm_stride, cn_stride, a_offset, zero, zero_data, params, quantization_params);
    return;
  }
  const struct sme_input input = POSITIONS(zero_data);
  const struct output output = OUTPUT(input, quantization_params);
  compute(DYNAMIC, &input, nc, w, &output);
}

// Adds products of ones, four for each sum. The second row shows whether all sums were computed.
bool xnnpack_sys_sme_multiplies_bytes(void) {
  uint32_t sums[SME_MAX_BYTES / sizeof(uint32_t)] __attribute__((aligned(16)));
  struct sme_saved saved;
  sme_start(&saved);
  __asm__ volatile(SME_ASM
                   "ptrue p0.b\n"
                   "mov z0.b, #1\n"
                   "smopa za0.s, p0/m, p0/m, z0.b, z0.b\n"
                   "mov w12, #1\n"
                   "st1w {za0h.s[w12, #0]}, p0, [%[to]]\n"
                   :
                   : [to] "r"(sums)
                   : "x12", "memory");
  sme_stop(&saved);
  return sums[0] == 4 && sums[1] == 4;
}
