// Advanced Matrix Extensions: eight registers of 16 rows of 64 bytes, and an instruction that multiplies two of them.
//
// GCC's intrinsics do not say that loads read memory, so that it takes what was written for them for dead. These here do.

#ifndef XNNPACK_SYS_AMX_H
#define XNNPACK_SYS_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether the processor has them, for 8-bit integers, and the system lets this process use them.
bool xnnpack_sys_has_amx(void);

// Whether layers are better off with them that have so many inputs at a position of their kernels: fewer would have to be
// gathered one by one.
static inline bool xnnpack_sys_amx_pays(size_t inputs) { return inputs >= 16; }

// The same of fully connected layers. Most have one row, for which registers take longer to be ready than VNNI to multiply it
// with a hundred thousand weights; how many there will be is not known when weights are packed.
static inline bool xnnpack_sys_amx_pays_for_rows(size_t inputs, size_t outputs) {
  return xnnpack_sys_amx_pays(inputs) && inputs * outputs >= (size_t) 1 << 18;
}

#define AMX_TILE_ROWS 16
// Of a row.
#define AMX_TILE_BYTES 64

// What LDTILECFG reads.
struct amx_shapes {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} __attribute__((aligned(64)));

#define AMX_CONFIGURE(shapes) __asm__ volatile("ldtilecfg %0" : : "m"(*(shapes)) : "memory")

// LDTILECFG takes as long as dozens of other instructions. Where one thread computes tiles one after the other and runs nothing
// else in between, which could leave other shapes behind, it is enough once.
struct amx_kept {
  bool keeps;
  // Whatever names the shapes, or 0.
  uint32_t shapes;
};

extern __thread struct amx_kept xnnpack_sys_amx_kept;

static inline void xnnpack_sys_keep_amx_shapes(bool keeps) {
  xnnpack_sys_amx_kept = (struct amx_kept) {.keeps = keeps};
}

#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : : :)
#define AMX_LOAD(tile, from, stride) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((size_t) (stride)) : "memory")
#define AMX_STORE(tile, to, stride) \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((size_t) (stride)) : "memory")
// Adds the products of four bytes of `rows` and four of `columns` to each word of `sums`. `bytes` says of both whether they have
// a sign: `ss`, `su`, `us` or `uu`.
#define AMX_MULTIPLY(bytes, sums, rows, columns) \
  __asm__ volatile("tdpb" #bytes "d %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sums : : :)

#endif
