// Sums of the columns of 8-bit integers: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK widens each byte to 16 bits before it adds it. Here a vector of bytes is added to sums of 16 bits at once: the low byte of each
// is an even column, whose sum is what remains of the total, modulo 2^16, without 256 times the sum of the odd columns.

#include "ukernels/sum_columns_x8.h"

#include <stdbool.h>
#include <stdint.h>

#include "ukernels/blocks_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/config.h"

enum {
  // The sum of more bytes may not fit in 16 bits.
  MOST_ROWS = 256,
  // Vectors of a row that are read one after the other.
  VECTORS = 4,
  // Sums of 32 bits that are stored at once.
  GROUP = 4,
  LANES = sizeof(vint) / sizeof(__m128i),
};

#define UNROLL _Pragma("GCC unroll 4")

struct columns {
  const uint8_t* first;
  size_t stride;
  size_t rows;
  bool are_signed;
};

// Adds the sums of a vector of columns to the output, except for the first `skipped`.
static XNN_INLINE void add_sums(vint total, vint odd, int32_t excess, size_t skipped, int32_t* output) {
  const vint even = VINT(sub_epi16, total, VINT(slli_epi16, odd, 8));
  const vint words[2] = {VINT(unpacklo_epi16, even, odd), VINT(unpackhi_epi16, even, odd)};
  // Each lane of 128 bits has 16 columns, four in each of these vectors.
  __m128i sums[QUARTERS][LANES];
  for (size_t i = 0; i < 2; i++) {
    vint_store(sums[2 * i], VINT(unpacklo_epi16, words[i], vint_zero()));
    vint_store(sums[2 * i + 1], VINT(unpackhi_epi16, words[i], vint_zero()));
  }
  const __m128i excesses = _mm_set1_epi32(excess);
  for (size_t at = skipped / GROUP; at < LANES * QUARTERS; at++) {
    const __m128i sum = _mm_sub_epi32(sums[at % QUARTERS][at / QUARTERS], excesses);
    int32_t* const to = output + at * GROUP;
    if (at * GROUP >= skipped) {
      _mm_storeu_si128((__m128i*) to, _mm_add_epi32(_mm_loadu_si128((const __m128i*) to), sum));
      continue;
    }
    int32_t some[GROUP];
    _mm_storeu_si128((__m128i*) some, sum);
    for (size_t i = skipped % GROUP; i < GROUP; i++) {
      to[i] += some[i];
    }
  }
}

// Adds `count` rows, 1 or 2, to sums of a number of vectors. Both numbers are constants in each call.
static XNN_INLINE void add_rows(
    bool are_signed, size_t count, size_t vectors, const uint8_t* row, size_t stride, vint totals[VECTORS], vint odd[VECTORS])
{
  UNROLL for (size_t j = 0; j < vectors; j++) {
    vint bytes = flip_sign(are_signed, vint_load(row + j * sizeof(vint)));
    vint above = VINT(srli_epi16, bytes, 8);
    if (count == 2) {
      const vint second = flip_sign(are_signed, vint_load(row + stride + j * sizeof(vint)));
      bytes = VINT(add_epi16, bytes, second);
      above = VINT(add_epi16, above, VINT(srli_epi16, second, 8));
    }
    totals[j] = VINT(add_epi16, totals[j], bytes);
    odd[j] = VINT(add_epi16, odd[j], above);
  }
}

// Adds a number of vectors of columns, a constant in each call.
static XNN_INLINE void add_vectors(struct columns columns, size_t vectors, size_t skipped, int32_t* output) {
  const uint8_t* row = columns.first;
  for (size_t rest = columns.rows; rest != 0;) {
    const size_t count = rest < MOST_ROWS ? rest : MOST_ROWS;
    vint totals[VECTORS];
    vint odd[VECTORS];
    UNROLL for (size_t j = 0; j < vectors; j++) {
      totals[j] = odd[j] = vint_zero();
    }
    for (size_t pair = 0; pair < count / 2; pair++) {
      add_rows(columns.are_signed, 2, vectors, row, columns.stride, totals, odd);
      row += 2 * columns.stride;
    }
    if (count % 2 != 0) {
      add_rows(columns.are_signed, 1, vectors, row, columns.stride, totals, odd);
      row += columns.stride;
    }
    const int32_t excess = columns.are_signed ? (int32_t) (BLOCK_SIGN * count) : 0;
    UNROLL for (size_t j = 0; j < vectors; j++) {
      add_sums(totals[j], odd[j], excess, skipped, output + j * sizeof(vint));
    }
    rest -= count;
  }
}

// There are at least as many channels as a vector has. The last vector may overlap the one before it.
static XNN_INLINE void add_columns(
    bool are_signed, size_t rows, size_t channels, const uint8_t* input, size_t input_stride, int32_t* output)
{
  struct columns columns = {.first = input, .stride = input_stride, .rows = rows, .are_signed = are_signed};
  size_t at = 0;
  for (; channels - at >= VECTORS * sizeof(vint); at += VECTORS * sizeof(vint)) {
    columns.first = input + at;
    add_vectors(columns, VECTORS, 0, output + at);
  }
  // Two vectors of AVX2 are the part of a row that the processor fetches at once.
  for (; channels - at >= 2 * sizeof(vint); at += 2 * sizeof(vint)) {
    columns.first = input + at;
    add_vectors(columns, 2, 0, output + at);
  }
  for (; channels - at >= sizeof(vint); at += sizeof(vint)) {
    columns.first = input + at;
    add_vectors(columns, 1, 0, output + at);
  }
  if (at != channels) {
    const size_t last = channels - sizeof(vint);
    columns.first = input + last;
    add_vectors(columns, 1, at - last, output + last);
  }
}

#define SUM_COLUMNS(type, are_signed) \
  X8_RDSUM(WITH_ISA(xnnpack_sys_##type##_rdsum_ukernel__)) { \
    if (channels >= sizeof(vint)) { \
      add_columns(are_signed, rows, channels, input, input_stride, output); \
      return; \
    } \
    xnn_init_##type##_rdsum_config()->rd_ukernel(rows, channels, input, input_stride, zero, output, params); \
  }

SUM_COLUMNS(qs8, true)
SUM_COLUMNS(qu8, false)
