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

// The same of fully connected layers. Most have one row, which VNNI multiplies sooner, with weights packed for itself; how many
// there will be is not known when weights are packed.
static inline bool xnnpack_sys_amx_pays_for_rows(size_t inputs, size_t outputs) {
  return xnnpack_sys_amx_pays(inputs) && inputs * outputs >= (size_t) 1 << 18;
}

// Where inputs are.
struct amx_input {
  size_t rows;
  // For each position of a kernel the addresses of so many rows, or NULL: rows are `stride` apart from `at` on.
  const uint8_t* const* places;
  size_t places_of_position;
  const uint8_t* at;
  size_t stride;
  size_t positions;
  // Bytes of a row at a position.
  size_t depth;
  // What to add to an address of `places` other than `zero`, for which `padding` is read.
  size_t offset;
  const uint8_t* zero;
  const uint8_t* padding;
};

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

// What tiles have in common that one thread computes one after the other, with nothing else in between.
struct amx_turn {
  // LDTILECFG takes as long as dozens of other instructions. Once is enough where nothing else can leave other shapes behind.
  bool keeps_shapes;
  // Whatever names the shapes, or 0.
  uint32_t shapes;
  // Whether AMX is late for all of them together.
  bool is_late;
};

extern __thread struct amx_turn xnnpack_sys_amx_turn;

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
