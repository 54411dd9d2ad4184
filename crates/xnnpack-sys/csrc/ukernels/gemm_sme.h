// Matrix products by outer products with SME: rows of inputs by channels, each up to two vectors of words. Included by a file for each
// type, which defines the instruction and its operands: SME_PRODUCT, SME_ELEMENT. `gemm_sme_tiles.h` has the loops.
//
// A word is a float, or four bytes whose products are added at once. The register ZA has four tiles of sums, each with a word for every
// pair of lanes of two vectors:
//
// |              | first channels | further channels |
// |--------------|----------------|------------------|
// | first rows   | za0            | za1              |
// | further rows | za2            | za3              |
//
// An outer product takes a word of each row, and the weights of each channel for it. Weights are packed like this; inputs are
// transposed by ZA, which is written by rows and read by columns, into a buffer on the stack, once for all channels.

#ifndef XNNPACK_SYS_GEMM_SME_H
#define XNNPACK_SYS_GEMM_SME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/transpose_sme.h"
#include "xnnpack/common.h"

// How weights are packed: tiles of a number of channels, each with a word for each channel before the weights for words of inputs.
struct sme_layout {
  size_t channels;
  size_t tile_bytes;
  // From the weights for a word of inputs to those for the next.
  size_t word_bytes;
  // Bytes of an output.
  size_t output_bytes;
};

// Rows of two tiles of sums: their place among all rows, and the addresses of the first words of the channels of both tiles.
struct sme_sums {
  bool are_first;
  size_t row;
  size_t rows;
  size_t channels;
  const void* first;
  const void* further;
};

// The weights of up to two vectors of channels: an address for each, and bytes from those for a word of inputs to the next.
struct sme_weights {
  const void* first;
  const void* further;
  size_t stride;
};

// Sets all sums of a channel to a word.
static XNN_INLINE void sme_set_sums(const void* of_first, const void* of_further) {
  __asm__ volatile(SME_ASM
                   "ptrue p0.s\n"
                   "zero {za}\n"
                   "ldr z0, [%[first]]\n"
                   "ldr z1, [%[further]]\n"
                   "addha za0.s, p0/m, p0/m, z0.s\n"
                   "addha za1.s, p0/m, p0/m, z1.s\n"
                   "addha za2.s, p0/m, p0/m, z0.s\n"
                   "addha za3.s, p0/m, p0/m, z1.s\n"
                   :
                   : [first] "r"(of_first), [further] "r"(of_further)
                   : "memory");
}

// Sets all sums of a channel to a word times a number.
static XNN_INLINE void sme_set_sums_times(const void* of_first, const void* of_further, const int32_t* factor) {
  __asm__ volatile(SME_ASM
                   "ptrue p0.s\n"
                   "zero {za}\n"
                   "ldr z0, [%[first]]\n"
                   "ldr z1, [%[further]]\n"
                   "ld1rw {z2.s}, p0/z, [%[factor]]\n"
                   "mul z0.s, p0/m, z0.s, z2.s\n"
                   "mul z1.s, p0/m, z1.s, z2.s\n"
                   "addha za0.s, p0/m, p0/m, z0.s\n"
                   "addha za1.s, p0/m, p0/m, z1.s\n"
                   "addha za2.s, p0/m, p0/m, z0.s\n"
                   "addha za3.s, p0/m, p0/m, z1.s\n"
                   :
                   : [first] "r"(of_first), [further] "r"(of_further), [factor] "r"(factor)
                   : "memory");
}

#define SME_LOAD_INPUTS(z, at) "ldr " z ", [%[rows], #" at ", mul vl]\n"
#define SME_LOAD_WEIGHTS(z, channels, at) "ld1b {" z ".b}, p0/z, [%[" channels "]" at "]\n"
#define SME_ADD(tile, z_of_rows, z_of_channels) \
  SME_PRODUCT " " tile ".s, p0/m, p0/m, " z_of_rows "." SME_ELEMENT ", " z_of_channels "." SME_ELEMENT "\n"

// Adds the products of a word of one or two vectors of rows and of channels. `at0` and `at1` are the places of vectors of rows, `at` is
// that of weights.
#define SME_STEP_1X1(at0, at1, at, z0, z1, z2, z3) \
  SME_LOAD_INPUTS(z0, at0) SME_LOAD_WEIGHTS(z2, "first", at) \
  SME_ADD("za0", z0, z2)
#define SME_STEP_1X2(at0, at1, at, z0, z1, z2, z3) \
  SME_LOAD_INPUTS(z0, at0) SME_LOAD_WEIGHTS(z2, "first", at) SME_LOAD_WEIGHTS(z3, "further", at) \
  SME_ADD("za0", z0, z2) SME_ADD("za1", z0, z3)
#define SME_STEP_2X1(at0, at1, at, z0, z1, z2, z3) \
  SME_LOAD_INPUTS(z0, at0) SME_LOAD_INPUTS(z1, at1) SME_LOAD_WEIGHTS(z2, "first", at) \
  SME_ADD("za0", z0, z2) SME_ADD("za2", z1, z2)
#define SME_STEP_2X2(at0, at1, at, z0, z1, z2, z3) \
  SME_LOAD_INPUTS(z0, at0) SME_LOAD_INPUTS(z1, at1) SME_LOAD_WEIGHTS(z2, "first", at) SME_LOAD_WEIGHTS(z3, "further", at) \
  SME_ADD("za0", z0, z2) SME_ADD("za1", z0, z3) SME_ADD("za2", z1, z2) SME_ADD("za3", z1, z3)

// Four words in a step, then one at a time.
#define SME_MULTIPLY(name, STEP) \
  static XNN_INLINE void name(const void* rows, struct sme_weights weights, size_t words) { \
    const size_t stride = weights.stride; \
    __asm__ volatile( \
        SME_ASM \
        "ptrue p0.b\n" \
        "subs %[words], %[words], #4\n" \
        "b.lo 2f\n" \
        "1:\n" \
        STEP("0", "1", "", "z0", "z1", "z2", "z3") \
        STEP("2", "3", ", %[stride]", "z4", "z5", "z6", "z7") \
        STEP("4", "5", ", %[stride2]", "z16", "z17", "z18", "z19") \
        STEP("6", "7", ", %[stride3]", "z20", "z21", "z22", "z23") \
        "addvl %[rows], %[rows], #8\n" \
        "add %[first], %[first], %[stride], lsl #2\n" \
        "add %[further], %[further], %[stride], lsl #2\n" \
        "subs %[words], %[words], #4\n" \
        "b.hs 1b\n" \
        "2:\n" \
        "adds %[words], %[words], #4\n" \
        "b.eq 4f\n" \
        "3:\n" \
        STEP("0", "1", "", "z0", "z1", "z2", "z3") \
        "addvl %[rows], %[rows], #2\n" \
        "add %[first], %[first], %[stride]\n" \
        "add %[further], %[further], %[stride]\n" \
        "subs %[words], %[words], #1\n" \
        "b.ne 3b\n" \
        "4:\n" \
        : [rows] "+&r"(rows), [first] "+&r"(weights.first), [further] "+&r"(weights.further), [words] "+&r"(words) \
        : [stride] "r"(stride), [stride2] "r"(2 * stride), [stride3] "r"(3 * stride) \
        : "cc", "memory"); \
  }

SME_MULTIPLY(sme_multiply_1x1, SME_STEP_1X1)
SME_MULTIPLY(sme_multiply_1x2, SME_STEP_1X2)
SME_MULTIPLY(sme_multiply_2x1, SME_STEP_2X1)
SME_MULTIPLY(sme_multiply_2x2, SME_STEP_2X2)

// Adds the products of transposed rows and of up to two vectors of channels.
static XNN_INLINE void sme_multiply(
    size_t lanes, size_t rows, size_t channels, const void* inputs, struct sme_weights weights, size_t words)
{
  if (rows > lanes) {
    if (channels > lanes) {
      sme_multiply_2x2(inputs, weights, words);
    } else {
      sme_multiply_2x1(inputs, weights, words);
    }
  } else if (channels > lanes) {
    sme_multiply_1x2(inputs, weights, words);
  } else {
    sme_multiply_1x1(inputs, weights, words);
  }
}

// Vectors of ZA that are moved in a step. A vector has a multiple of as many bytes.
#define SME_MOVE_4(move, a, b, c, d) \
  move " za[w12, #" a "], [%[at], #" a ", mul vl]\n" move " za[w12, #" b "], [%[at], #" b ", mul vl]\n" \
  move " za[w12, #" c "], [%[at], #" c ", mul vl]\n" move " za[w12, #" d "], [%[at], #" d ", mul vl]\n"

// Moves all sums to memory or from there, as many vectors as one has bytes.
#define SME_MOVE_SUMS(move) \
  __asm__ volatile( \
      SME_ASM \
      "mov w12, #0\n" \
      "1:\n" \
      SME_MOVE_4(move, "0", "1", "2", "3") \
      SME_MOVE_4(move, "4", "5", "6", "7") \
      SME_MOVE_4(move, "8", "9", "10", "11") \
      SME_MOVE_4(move, "12", "13", "14", "15") \
      "addvl %[at], %[at], #16\n" \
      "add w12, w12, #16\n" \
      "cmp x12, %[vector]\n" \
      "b.lo 1b\n" \
      : [at] "+&r"(at) \
      : [vector] "r"(vector) \
      : "x12", "cc", "memory")

static XNN_INLINE void sme_save_sums(size_t vector, void* at) { SME_MOVE_SUMS("str"); }
static XNN_INLINE void sme_restore_sums(size_t vector, const void* at) { SME_MOVE_SUMS("ldr"); }

// Repeats instructions for rows of two tiles of sums: PREPARE once, ROW for a slice with the number in w12 or the one behind it. They use
// predicates 1 and 2 for the channels that exist, and x13 for the words of a vector. Of the operands, `at` is an address that ROW advances,
// and `more` another pointer that it may change.
#define SME_FOR_ROWS(PREPARE, ROW, tile0, tile1, pointer, ...) \
  __asm__ volatile( \
      SME_ASM \
      "ptrue p0.s\n" \
      "cntw x13\n" \
      "whilelo p1.s, xzr, %[channels]\n" \
      "whilelo p2.s, x13, %[channels]\n" \
      PREPARE \
      "mov w12, #0\n" \
      "tbz %[rows], #0, 1f\n" \
      ROW(tile0, tile1, "0") \
      "mov w12, #1\n" \
      "subs %[rows], %[rows], #1\n" \
      "b.eq 2f\n" \
      "1:\n" \
      ROW(tile0, tile1, "0") \
      ROW(tile0, tile1, "1") \
      "add w12, w12, #2\n" \
      "subs %[rows], %[rows], #2\n" \
      "b.ne 1b\n" \
      "2:\n" \
      : [at] "+&r"(at), [rows] "+&r"(rows), [more] "+&r"(pointer) \
      : [channels] "r"(channels), __VA_ARGS__ \
      : "x12", "x13", "x14", "x15", "cc", "memory")

#endif
