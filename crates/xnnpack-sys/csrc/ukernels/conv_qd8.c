// Convolutions of images quantized at run time, with weights of int8.
//
// Inputs have 128 added, because the instruction multiplies unsigned by signed bytes: when they are quantized, if nothing but
// convolutions reads them (`quantize_qd8.c`), or here. In the tiles of `gemm_qd8.c` that takes an addition for every two products;
// here one addition for eight inputs serves four products that give 32 channels. A channel has two sums side by side, which are
// added behind the last position. Results are those of TFLite's reference kernels.
//
// `sign`, `rows` and `eights` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays
// become registers.

#include "ukernels/gemm_qd8.h"

#include <string.h>

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "ukernels/output_f32.h"
#include "xnnpack/math.h"

// GCC 12 would copy every sum twice in each step.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-coalesce-vars")
#endif

#define MAX_ROWS QD8_CONV_ROWS
#define CHANNELS QD8_GEMM_CHANNELS
#define DEPTH (1 << QD8_CONV_LOG2_DEPTH)
#define LANES 16
// Channels of a vector of weights, and such vectors in a tile.
#define EIGHT 8
#define EIGHTS (CHANNELS / EIGHT)
#define UNROLL _Pragma("GCC unroll 6")
// Makes the compiler forget what it knows of memory, so that values needed once for a position are read from memory, and registers
// are left for the addresses of rows. GCC would keep those addresses in vectors, and move them in each step.
#define FORGET(pointer) __asm__("" : "+r"(pointer))
#define FORGET_MEMORY __asm__ volatile("" : : : "memory")

enum sign { SIGNED, UNSIGNED };

struct image {
  size_t mr;
  // Addresses: those of one position for all rows of the tile after each other. `places_size` is the bytes of all.
  const int8_t** places;
  size_t places_size;
  // Added to addresses other than `zero`, which is replaced by `padding`.
  size_t offset;
  const int8_t* zero;
  const int8_t* padding;
  // Bytes of a position.
  size_t depth;
  const struct xnn_qd8_quantization_params* quantization;
};

// Adds products of eight inputs.
static XNN_INLINE void multiply(
    enum sign sign, size_t rows, size_t eights, const int8_t* const from[MAX_ROWS], size_t k, const uint8_t* weights,
    __m512i sums[MAX_ROWS][EIGHTS])
{
  __m512i bytes[EIGHTS];
  UNROLL for (size_t eight = 0; eight < eights; eight++) {
    bytes[eight] = _mm512_loadu_si512(weights + eight * EIGHT * DEPTH);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    int64_t word;
    memcpy(&word, from[row] + k, sizeof(word));
    __m512i inputs = _mm512_set1_epi64(word);
    if (sign == SIGNED) {
      inputs = _mm512_xor_si512(inputs, _mm512_set1_epi8((int8_t) 0x80));
    }
    UNROLL for (size_t eight = 0; eight < eights; eight++) {
      sums[row][eight] = _mm512_dpbusd_epi32(sums[row][eight], inputs, bytes[eight]);
    }
  }
}

// Adds products over all positions and returns the address behind the weights. Weights for inputs behind a position are 0.
static XNN_INLINE const uint8_t* multiply_places(
    enum sign sign, size_t rows, size_t eights, const struct image* image, const uint8_t* weights,
    __m512i sums[MAX_ROWS][EIGHTS])
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t eight = 0; eight < eights; eight++) {
      sums[row][eight] = _mm512_setzero_si512();
    }
  }
  const int8_t** place = image->places;
  const int8_t** const end = (const int8_t**) ((uintptr_t) place + image->places_size);
  do {
    FORGET_MEMORY;
    const int8_t* from[MAX_ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = place[row] == image->zero ? image->padding : place[row] + image->offset;
    }
    size_t k = 0;
    do {
      multiply(sign, rows, eights, from, k, weights, sums);
      weights += CHANNELS * DEPTH;
      k += DEPTH;
    } while (k < image->depth);
    place += rows;
  } while (place != end);
  return weights;
}

// Adds the two sums of each of 16 channels.
static XNN_INLINE __m512i add_pairs(__m512i front, __m512i back) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_add_epi32(_mm512_permutex2var_epi32(front, even, back), _mm512_permutex2var_epi32(front, odd, back));
}

// Computes up to 32 channels and returns the end of their weights. Rows behind the last repeat it.
static XNN_INLINE const uint8_t* tile(
    enum sign sign, size_t rows, size_t eights, const struct image* image, const uint8_t* weights,
    const struct output* output, __mmask32 lanes)
{
  __m512i sums[MAX_ROWS][EIGHTS];
  const int32_t* sums_of_weights = (const int32_t*) weights;
  weights = multiply_places(sign, rows, eights, image, weights + CHANNELS * sizeof(int32_t), sums);
  const float* scales = (const float*) weights;
  const float* bias = scales + CHANNELS;
  const __m512i zero_point = _mm512_set1_epi32(image->quantization->zero_point + (sign == SIGNED ? 128 : 0));
  const __m512 image_scale = _mm512_set1_ps(image->quantization->inv_scale);
  UNROLL for (size_t eight = 0; eight < eights; eight += 2) {
    const size_t channel = eight * EIGHT;
    const __m512i corrections = _mm512_mullo_epi32(_mm512_loadu_si512(sums_of_weights + channel), zero_point);
    UNROLL for (size_t row = 0; row < rows; row++) {
      const __m512i back = eight + 1 < eights ? sums[row][eight + 1] : _mm512_setzero_si512();
      const __m512i sum = _mm512_add_epi32(add_pairs(sums[row][eight], back), corrections);
      const __m512 scaled = _mm512_mul_ps(
          _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(scales + channel)), image_scale);
      const __m512 biased = _mm512_add_ps(scaled, _mm512_loadu_ps(bias + channel));
      if (row < image->mr) {
        store(output, row, channel, biased, lanes);
      }
    }
  }
  return (const uint8_t*) (bias + CHANNELS);
}

static XNN_INLINE void convolve(
    enum sign sign, size_t rows, size_t nc, const struct image* image, const uint8_t* weights, struct output output,
    size_t tile_stride)
{
  for (; nc > CHANNELS; nc -= CHANNELS) {
    weights = tile(sign, rows, EIGHTS, image, weights, &output, UINT32_MAX);
    output.at = (float*) ((uintptr_t) output.at + tile_stride);
  }
  const __mmask32 lanes = UINT32_MAX >> (CHANNELS - nc);
  if (nc > LANES) {
    tile(sign, rows, EIGHTS, image, weights, &output, lanes);
  } else if (nc > EIGHT) {
    tile(sign, rows, 2, image, weights, &output, lanes);
  } else {
    tile(sign, rows, 1, image, weights, &output, lanes);
  }
}

#define IGEMM(sign, rows_of_tile) \
  ASSERT_IGEMM(rows_of_tile, 1); \
  const struct image fields = { \
      .mr = mr, .places = a, .places_size = ks, .offset = a_offset, .zero = zero, .padding = zero_data, .depth = kc, \
      .quantization = quantization_params}; \
  const struct image* image = &fields; \
  FORGET(image); \
  convolve(sign, rows_of_tile, nc, image, w, OUTPUT, cn_stride)

QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_1x32c8__avx512vnnigfni) {
  IGEMM(SIGNED, 1);
}

QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_6x32c8__avx512vnnigfni) {
  IGEMM(SIGNED, QD8_CONV_ROWS);
}

QC8W_IGEMM(xnnpack_sys_qdu8_f32_qc8w_igemm_minmax_ukernel_1x32c8__avx512vnnigfni) {
  IGEMM(UNSIGNED, 1);
}

QC8W_IGEMM(xnnpack_sys_qdu8_f32_qc8w_igemm_minmax_ukernel_6x32c8__avx512vnnigfni) {
  IGEMM(UNSIGNED, QD8_CONV_ROWS);
}
