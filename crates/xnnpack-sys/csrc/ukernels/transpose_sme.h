// Transposition of rows of words with SME: ZA is written by rows and read by columns.

#ifndef XNNPACK_SYS_TRANSPOSE_SME_H
#define XNNPACK_SYS_TRANSPOSE_SME_H

#define XNNPACK_SYS_SME_ASSEMBLY

#include <stddef.h>
#include <stdint.h>

#include "ukernels/microkernel.h"
#include "ukernels/sme.h"
#include "xnnpack/common.h"
#include "xnnpack/math.h"

// Rows that are loaded in a step.
#define SME_ROWS_AT_ONCE 4

// Rows: an address of each for each position of a kernel, or the first of rows that are `stride` bytes apart.
struct sme_input {
  const void* const* places;
  size_t places_of_position;
  // Added to addresses other than `zero`, in bytes; that is replaced by `padding`.
  size_t offset;
  const void* zero;
  const void* padding;
  const void* first;
  size_t stride;
  size_t rows;
  size_t positions;
  // Words of a row at a position.
  size_t words;
};

static XNN_INLINE const void* sme_behind(const void* at, size_t bytes) { return (const void*) ((uintptr_t) at + bytes); }

// Writes the addresses of all rows at a position, and repeats the last so that they fill steps.
static XNN_INLINE void sme_find_rows(const struct sme_input* input, size_t position, const void* rows[SME_MAX_ROWS]) {
  const void* const* places = input->places;
  if (places != NULL) {
    places += position * input->places_of_position;
  }
  for (size_t i = 0; i < round_up_po2(input->rows, SME_ROWS_AT_ONCE); i++) {
    const size_t row = min(i, input->rows - 1);
    if (places == NULL) {
      rows[i] = sme_behind(input->first, row * input->stride);
    } else {
      rows[i] = places[row] == input->zero ? input->padding : sme_behind(places[row], input->offset);
    }
  }
}

// Loads words of up to a vector of rows into a tile, a row into each horizontal slice.
#define SME_LOAD_ROWS(tile) \
  __asm__ volatile( \
      SME_ASM \
      "whilelo p1.s, xzr, %[words]\n" \
      "mov w12, #0\n" \
      "1:\n" \
      "ldp x13, x14, [%[from]], #16\n" \
      "ldp x15, x16, [%[from]], #16\n" \
      "ld1w {" tile "h.s[w12, #0]}, p1/z, [x13, %[at], lsl #2]\n" \
      "ld1w {" tile "h.s[w12, #1]}, p1/z, [x14, %[at], lsl #2]\n" \
      "ld1w {" tile "h.s[w12, #2]}, p1/z, [x15, %[at], lsl #2]\n" \
      "ld1w {" tile "h.s[w12, #3]}, p1/z, [x16, %[at], lsl #2]\n" \
      "add w12, w12, #4\n" \
      "cmp x12, %[rows]\n" \
      "b.lo 1b\n" \
      : [from] "+&r"(from) \
      : [rows] "r"(rows), [words] "r"(words), [at] "r"(at) \
      : "x12", "x13", "x14", "x15", "x16", "cc", "memory")

static XNN_INLINE void sme_load_first_rows(const void* const* from, size_t rows, size_t at, size_t words) {
  SME_LOAD_ROWS("za0");
}

static XNN_INLINE void sme_load_further_rows(const void* const* from, size_t rows, size_t at, size_t words) {
  SME_LOAD_ROWS("za1");
}

// Stores words of all rows: vertical slices of two tiles in turn. Returns the address behind them.
static XNN_INLINE void* sme_store_columns(size_t words, void* to) {
  __asm__ volatile(SME_ASM
                   "ptrue p0.s\n"
                   "cntw x13\n"
                   "cntw x14, all, mul #2\n"
                   "cntw x15, all, mul #3\n"
                   "mov w12, #0\n"
                   "tbz %[words], #0, 1f\n"
                   "st1w {za0v.s[w12, #0]}, p0, [%[to]]\n"
                   "st1w {za1v.s[w12, #0]}, p0, [%[to], x13, lsl #2]\n"
                   "addvl %[to], %[to], #2\n"
                   "mov w12, #1\n"
                   "subs %[words], %[words], #1\n"
                   "b.eq 2f\n"
                   "1:\n"
                   "st1w {za0v.s[w12, #0]}, p0, [%[to]]\n"
                   "st1w {za1v.s[w12, #0]}, p0, [%[to], x13, lsl #2]\n"
                   "st1w {za0v.s[w12, #1]}, p0, [%[to], x14, lsl #2]\n"
                   "st1w {za1v.s[w12, #1]}, p0, [%[to], x15, lsl #2]\n"
                   "addvl %[to], %[to], #4\n"
                   "add w12, w12, #2\n"
                   "subs %[words], %[words], #2\n"
                   "b.ne 1b\n"
                   "2:\n"
                   : [to] "+&r"(to), [words] "+&r"(words)
                   :
                   : "x12", "x13", "x14", "x15", "cc", "memory");
  return to;
}

// Transposes `count` words of each row from `start` on, counted over all positions: two vectors of rows for each word.
static XNN_INLINE void sme_transpose(
    const struct sme_input* input, size_t lanes, size_t start, size_t count, void* to)
{
  const size_t first = min(input->rows, lanes);
  size_t at = start % input->words;
  for (size_t position = start / input->words; count > 0; position++, at = 0) {
    const void* rows[SME_MAX_ROWS];
    sme_find_rows(input, position, rows);
    const size_t end = at + min(input->words - at, count);
    count -= end - at;
    for (; at < end; at += lanes) {
      sme_load_first_rows(rows, first, at, end - at);
      if (input->rows > first) {
        sme_load_further_rows(rows + first, input->rows - first, at, end - at);
      }
      to = sme_store_columns(min(end - at, lanes), to);
    }
  }
}

#endif
