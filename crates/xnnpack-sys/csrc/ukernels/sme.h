// Streaming mode and the ZA register of SME, for microkernels that multiply by outer products (`gemm_sme.h`).
//
// Files with assembly for SME are compiled with -mgeneral-regs-only: most instructions of NEON are illegal in streaming mode, and compilers
// must not choose them. Vectors are in assembly alone, which names its registers. Functions of the C library may have such instructions, and
// are not called in streaming mode.

#ifndef XNNPACK_SYS_SME_H
#define XNNPACK_SYS_SME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/common.h"

// Bytes of the longest vectors that are used. XNNPACK's configurations have room for as many rows as a tile then has.
#define SME_MAX_BYTES 64
#define SME_MAX_ROWS (2 * SME_MAX_BYTES / sizeof(uint32_t))

// Returns the bytes of a vector in streaming mode if microkernels for SME may be used, and 0 otherwise. Tiles, and so packed weights,
// are for vectors of this length.
size_t xnnpack_sys_sme_bytes(void);

// Rows of a tile for vectors of some bytes, and as many channels: two vectors of words.
static XNN_INLINE size_t sme_side_of(size_t bytes) { return 2 * bytes / sizeof(uint32_t); }

#ifdef XNNPACK_SYS_SME_ASSEMBLY

// The assembler knows the instructions after this. Compilers may emit other directives between statements.
#define SME_ASM ".arch_extension fp\n.arch_extension simd\n.arch_extension sme\n"

static XNN_INLINE size_t sme_vector_bytes(void) {
  size_t bytes;
  __asm__ volatile(SME_ASM "rdsvl %0, #1\n" : "=r"(bytes));
  return bytes;
}

// Whether this thread has vectors of the length that weights are packed for, and no caller wants to keep contents of ZA: it would have
// set TPIDR2_EL0 to where they can be saved.
static XNN_INLINE bool sme_is_usable(void) {
  uint64_t saving;
  __asm__ volatile("mrs %0, S3_3_C13_C0_5" : "=r"(saving));
  return saving == 0 && sme_vector_bytes() == xnnpack_sys_sme_bytes();
}

// The parts of registers that functions must preserve; streaming mode clears all of them.
struct sme_saved {
  uint64_t registers[8];
};

// Starts streaming mode and clears ZA.
static XNN_INLINE void sme_start(struct sme_saved* saved) {
  __asm__ volatile(SME_ASM
                   "stp d8, d9, [%0]\n"
                   "stp d10, d11, [%0, #16]\n"
                   "stp d12, d13, [%0, #32]\n"
                   "stp d14, d15, [%0, #48]\n"
                   "smstart\n"
                   :
                   : "r"(saved->registers)
                   : "memory");
}

static XNN_INLINE void sme_clear(void) { __asm__ volatile(SME_ASM "zero {za}\n" : : : "memory"); }

static XNN_INLINE void sme_stop(const struct sme_saved* saved) {
  __asm__ volatile(SME_ASM
                   "smstop\n"
                   "ldp d8, d9, [%0]\n"
                   "ldp d10, d11, [%0, #16]\n"
                   "ldp d12, d13, [%0, #32]\n"
                   "ldp d14, d15, [%0, #48]\n"
                   :
                   : "r"(saved->registers)
                   : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
                     "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

#endif

#endif
