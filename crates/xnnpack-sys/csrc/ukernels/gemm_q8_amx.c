// The matrix products of `gemm_q8.c` with AMX, which multiplies eight times as fast as VNNI does. Weights are packed as there,
// those of int8 without 128 added, and sums are rounded as there, so that results are the same bit for bit.

#include "ukernels/gemm_q8.h"

#include "ukernels/few_rows_q8.h"
#include "ukernels/gemm_amx.h"
#include "ukernels/q8.h"

// A tile of sums on its way to the output.
struct tile {
  int32_t sums[AMX_ROWS][AMX_CHANNELS] __attribute__((aligned(AMX_TILE_BYTES)));
  // SIGNED.
  const float* scales;
  uint8_t* at;
  __mmask32 lanes;
};

// UNSIGNED: subtracts the zero point of weights times the sum of a row's inputs.
static XNN_INLINE __m512i sums_of(
    enum kind kind, const struct tile* tile, size_t row, size_t half, const int32_t zero_points[AMX_ROWS][AMX_LANES])
{
  const __m512i sums = _mm512_load_si512(tile->sums[row] + half * AMX_LANES);
  return kind == SIGNED ? sums : _mm512_sub_epi32(sums, _mm512_load_si512(zero_points[row]));
}

// Turns sums of a tile into outputs, 32 or 16 channels. Rows behind the last are computed, too.
static XNN_INLINE void finish_halves(
    enum kind kind, size_t halves, const struct tile* tile, size_t rows,
    const int32_t zero_points[AMX_ROWS][AMX_LANES], const struct output* output)
{
  const size_t at_once = halves == 2 ? 2 : 4;
  __m512 scales[2] = {_mm512_undefined_ps(), _mm512_undefined_ps()};
  if (kind == SIGNED) {
    scales[0] = _mm512_loadu_ps(tile->scales);
    scales[1] = _mm512_loadu_ps(tile->scales + (halves - 1) * AMX_LANES);
  }
  uint8_t* at = tile->at;
  for (size_t row = 0; row < rows; row += at_once) {
    __m512i sums[4];
    AMX_UNROLL for (size_t i = 0; i < 4; i++) {
      sums[i] = sums_of(kind, tile, row + i / halves, i % halves, zero_points);
    }
    const __m512i bytes = requantize_two(kind, &output->requantization, sums, sums + 2, scales);
    const size_t left = min(rows - row, at_once);
    if (halves == 2) {
      _mm256_mask_storeu_epi8(at, tile->lanes, _mm512_castsi512_si256(bytes));
      if (left == 2) {
        _mm256_mask_storeu_epi8(at + output->place.row_stride, tile->lanes, _mm512_extracti64x4_epi64(bytes, 1));
      }
    } else {
      const __mmask16 lanes = (__mmask16) tile->lanes;
      const __m128i of_rows[4] = {
          _mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1), _mm512_extracti32x4_epi32(bytes, 2),
          _mm512_extracti32x4_epi32(bytes, 3)};
      AMX_UNROLL for (size_t i = 0; i < 4; i++) {
        if (i < left) {
          _mm_mask_storeu_epi8(at + i * output->place.row_stride, lanes, of_rows[i]);
        }
      }
    }
    at += at_once * output->place.row_stride;
  }
}

static XNN_INLINE void finish(
    enum kind kind, const struct tile* tile, size_t rows, const int32_t zero_points[AMX_ROWS][AMX_LANES],
    const struct output* output)
{
  if (tile->lanes > UINT16_MAX) {
    finish_halves(kind, 2, tile, rows, zero_points, output);
  } else {
    finish_halves(kind, 1, tile, rows, zero_points, output);
  }
}

// The processor computes the sums of a tile while those of the tile before become outputs.
static XNN_INLINE void product(
    enum kind kind, size_t nc, const struct amx_input* input, const void* packed, uint8_t zero_point, struct output output)
{
  const enum amx_bytes bytes = kind == SIGNED ? AMX_SIGNED : AMX_UNSIGNED;
  struct amx_rows rows;
  struct tile tiles[2];
  int32_t zero_points[AMX_ROWS][AMX_LANES] __attribute__((aligned(AMX_TILE_BYTES)));
  amx_start(bytes, &rows, input);
  if (kind == UNSIGNED) {
    amx_multiply_by_one(bytes, &rows, zero_point, zero_points);
  }
  const uint8_t* weights = packed;
  for (size_t i = 0;; i++) {
    struct tile* tile = &tiles[i % 2];
    const int32_t* bias = (const int32_t*) weights;
    tile->at = output.place.at;
    tile->lanes = nc < AMX_CHANNELS ? (UINT32_C(1) << nc) - 1 : UINT32_MAX;
    weights = amx_multiply(bytes, &rows, nc, bias, (const uint8_t*) (bias + AMX_CHANNELS), tile->sums);
    tile->scales = (const float*) weights;
    weights += kind == SIGNED ? AMX_CHANNELS * sizeof(float) : 0;
    if (i > 0) {
      finish(kind, &tiles[(i - 1) % 2], input->rows, zero_points, &output);
    }
    if (nc <= AMX_CHANNELS) {
      finish(kind, tile, input->rows, zero_points, &output);
      return;
    }
    nc -= AMX_CHANNELS;
    output.place.at += output.place.tile_stride;
  }
}

// Whether microkernels for VNNI compute this, because there are few rows or the layer is small.
static bool is_late(const struct amx_input* input, size_t channels) {
  if (xnnpack_sys_amx_turn.keeps_shapes) {
    return xnnpack_sys_amx_turn.is_late;
  }
  return xnnpack_sys_q8_amx_is_late(input->rows, input->positions * input->depth, channels);
}

// The microkernels of each type for all sizes of tiles.
static void product_of_uint8(
    size_t nc, const struct amx_input* input, const void* packed, struct place to,
    const union xnn_qu8_conv_minmax_params* params)
{
  if (is_late(input, nc)) {
    xnnpack_sys_qu8_few_rows(nc, input, packed, to, params);
    return;
  }
  const uint8_t zero_point = (uint8_t) params->rndnu_scalar.kernel_zero_point;
  product(UNSIGNED, nc, input, packed, zero_point, (struct output) {to, unsigned_requantization(params)});
}

static void product_of_int8(
    size_t nc, const struct amx_input* input, const void* packed, struct place to,
    const union xnn_qs8_qc8w_conv_minmax_params* params)
{
  if (is_late(input, nc)) {
    xnnpack_sys_qs8_few_rows(nc, input, packed, to, params);
    return;
  }
  product(SIGNED, nc, input, packed, 0, (struct output) {to, signed_requantization(params)});
}

#define PLACE ((struct place) {.at = (uint8_t*) c, .row_stride = cm_stride, .tile_stride = cn_stride})

#define ROWS_OF_GEMM \
  (&(struct amx_input) {.rows = mr, .at = (const uint8_t*) a, .stride = a_stride, .positions = 1, .depth = kc})

// There are addresses of `rows_of_tile` rows for each position.
#define ROWS_OF_IGEMM(rows_of_tile) \
  (&(struct amx_input) { \
      .rows = mr, .places = (const uint8_t* const*) a, .places_of_position = rows_of_tile, \
      .positions = ks / (rows_of_tile * sizeof(void*)), .depth = kc, .offset = a_offset, \
      .zero = (const uint8_t*) zero, .padding = (const uint8_t*) zero})

QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_32x32c4__avx512amx) {
  ASSERT_GEMM(Q8_AMX_ROWS, 1);
  product_of_uint8(nc, ROWS_OF_GEMM, w, PLACE, params);
}

QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_32x32c4__avx512amx) {
  ASSERT_GEMM(Q8_AMX_ROWS, 1);
  product_of_int8(nc, ROWS_OF_GEMM, w, PLACE, params);
}

#define IGEMM(rows_of_tile) \
  QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_##rows_of_tile##x32c4__avx512amx) { \
    ASSERT_IGEMM(rows_of_tile, 1); \
    product_of_uint8(nc, ROWS_OF_IGEMM(rows_of_tile), w, PLACE, params); \
  } \
  QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_##rows_of_tile##x32c4__avx512amx) { \
    ASSERT_IGEMM(rows_of_tile, 1); \
    product_of_int8(nc, ROWS_OF_IGEMM(rows_of_tile), w, PLACE, params); \
  }

IGEMM(1)
IGEMM(16)
IGEMM(25)
IGEMM(32)
