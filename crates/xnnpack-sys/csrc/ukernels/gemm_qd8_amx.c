// The matrix products of `gemm_qd8.c` and `conv_qd8.c` with int8 weights, by AMX, which multiplies eight times as fast as VNNI. Sums are
// rescaled as there, so that results are the same bit for bit. Products with 4-bit weights that have a scale for each channel are XNNPACK's
// otherwise, with the same results.

#include "ukernels/gemm_qd8.h"

#include "ukernels/gemm_amx.h"
#include "ukernels/output_f32.h"

enum form {
  // Each row has a scale of its own.
  ROWS,
  // Rows that have scales of their own, and weights of four bits.
  ROWS_OF_NIBBLES,
  // All rows are of one image.
  IMAGE,
};

// A tile of sums on its way to the output.
struct tile {
  int32_t sums[AMX_ROWS][AMX_CHANNELS] __attribute__((aligned(AMX_TILE_BYTES)));
  const int32_t* sums_of_weights;
  const float* scales;
  const float* bias;
  float* at;
  __mmask32 lanes;
};

static XNN_INLINE void finish(
    enum form form, const struct tile* tile, size_t rows, const struct xnn_qd8_quantization_params* quantization,
    struct output output)
{
  const size_t halves = tile->lanes > UINT16_MAX ? 2 : 1;
  for (size_t half = 0; half < halves; half++) {
    const size_t channel = half * AMX_LANES;
    const __m512i sums_of_weights = _mm512_loadu_si512(tile->sums_of_weights + channel);
    const __m512 scales = _mm512_loadu_ps(tile->scales + channel);
    const __m512 bias = _mm512_loadu_ps(tile->bias + channel);
    output.at = tile->at;
    for (size_t row = 0; row < rows; row++) {
      __m512i sums = _mm512_load_si512(tile->sums[row] + channel);
      __m512 result;
      if (form != IMAGE) {
        const __m512i zero_point = _mm512_set1_epi32(quantization[row].zero_point);
        sums = _mm512_add_epi32(sums, _mm512_mullo_epi32(sums_of_weights, zero_point));
        sums = form == ROWS_OF_NIBBLES ? _mm512_srai_epi32(sums, 4) : sums;
        const __m512 of_row = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(quantization[row].inv_scale));
        result = _mm512_fmadd_ps(of_row, scales, bias);
      } else {
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales);
        result = _mm512_add_ps(_mm512_mul_ps(scaled, _mm512_set1_ps(quantization->inv_scale)), bias);
      }
      store(&output, row, channel, result, tile->lanes);
    }
  }
}

// Initial values of sums: the zero point of an image times the sums of weights.
static XNN_INLINE void start_sums(
    enum form form, const int32_t* sums_of_weights, const struct xnn_qd8_quantization_params* quantization,
    int32_t start[AMX_CHANNELS])
{
  for (size_t channel = 0; channel < AMX_CHANNELS; channel += AMX_LANES) {
    const __m512i zero_point = _mm512_set1_epi32(form == IMAGE ? quantization->zero_point : 0);
    const __m512i sums = _mm512_loadu_si512(sums_of_weights + channel);
    _mm512_store_si512(start + channel, _mm512_mullo_epi32(sums, zero_point));
  }
}

// The processor computes the sums of a tile while those of the tile before become outputs.
static XNN_INLINE void product(
    enum form form, size_t nc, const struct amx_input* input, const void* packed,
    const struct xnn_qd8_quantization_params* quantization, struct output output, size_t tile_stride)
{
  struct amx_rows rows;
  struct tile tiles[2];
  int32_t start[AMX_CHANNELS] __attribute__((aligned(AMX_TILE_BYTES)));
  const enum amx_bytes bytes = form == ROWS_OF_NIBBLES ? AMX_NIBBLES : AMX_SIGNED;
  amx_start(bytes, &rows, input);
  const uint8_t* weights = packed;
  float* at = output.at;
  for (size_t i = 0;; i++) {
    struct tile* tile = &tiles[i % 2];
    tile->sums_of_weights = (const int32_t*) weights;
    tile->at = at;
    tile->lanes = nc < AMX_CHANNELS ? (UINT32_C(1) << nc) - 1 : UINT32_MAX;
    start_sums(form, tile->sums_of_weights, quantization, start);
    weights += AMX_CHANNELS * sizeof(int32_t);
    weights = amx_multiply(bytes, &rows, nc, start, weights, tile->sums);
    tile->scales = (const float*) weights;
    tile->bias = tile->scales + AMX_CHANNELS;
    weights += 2 * AMX_CHANNELS * sizeof(float);
    if (i > 0) {
      finish(form, &tiles[(i - 1) % 2], input->rows, quantization, output);
    }
    if (nc <= AMX_CHANNELS) {
      finish(form, tile, input->rows, quantization, output);
      return;
    }
    nc -= AMX_CHANNELS;
    at = (float*) ((uintptr_t) at + tile_stride);
  }
}

#define GEMM(form) \
  ASSERT_GEMM(QD8_AMX_ROWS, 1); \
  const struct amx_input input = { \
      .rows = mr, .at = (const uint8_t*) a, .stride = a_stride, .positions = 1, .depth = kc}; \
  product(form, nc, &input, w, quantization_params, OUTPUT, cn_stride)

QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_32x32c4__avx512amx) {
  GEMM(ROWS);
}

QC4W_GEMM(xnnpack_sys_qd8_f32_qc4w_gemm_minmax_ukernel_32x32c4__avx512amx) {
  GEMM(ROWS_OF_NIBBLES);
}

// The microkernel for all sizes of tiles.
static void product_of_image(
    size_t nc, const struct amx_input* input, const void* packed,
    const struct xnn_qd8_quantization_params* quantization, struct output output, size_t tile_stride)
{
  product(IMAGE, nc, input, packed, quantization, output, tile_stride);
}

// There are addresses of `rows_of_tile` rows for each position.
#define IGEMM(rows_of_tile) \
  QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##rows_of_tile##x32c4__avx512amx) { \
    ASSERT_IGEMM(rows_of_tile, 1); \
    const struct amx_input input = { \
        .rows = mr, .places = (const uint8_t* const*) a, .places_of_position = rows_of_tile, \
        .positions = ks / (rows_of_tile * sizeof(void*)), .depth = kc, .offset = a_offset, \
        .zero = (const uint8_t*) zero, .padding = (const uint8_t*) zero_data}; \
    product_of_image(nc, &input, w, quantization_params, OUTPUT, cn_stride); \
  }

IGEMM(1)
IGEMM(16)
IGEMM(25)
IGEMM(32)
