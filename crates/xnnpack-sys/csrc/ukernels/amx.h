// Advanced Matrix Extensions: eight registers of 16 rows of 64 bytes, and an instruction that multiplies two of them.
//
// GCC's intrinsics do not declare that loads read memory, so that GCC drops stores before them. The macros here declare it.

#ifndef XNNPACK_SYS_AMX_H
#define XNNPACK_SYS_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether the processor has AMX for 8-bit integers and the system lets this process use it.
bool xnnpack_sys_has_amx(void);

// Whether AMX is faster for layers with a number of inputs at a position of the kernel: fewer would have to be gathered one by one.
static inline bool xnnpack_sys_amx_pays(size_t inputs) { return inputs >= 16; }

// Whether AMX is faster for fully connected layers. Those with one row are multiplied faster by VNNI with its own packing, and
// small ones before AMX is awake. Unless XNNPACK_SYS_MANY_ROWS tells, the number of rows is not known when weights are packed.
static inline bool xnnpack_sys_amx_pays_for_rows(size_t inputs, size_t outputs, bool has_many_rows) {
  return xnnpack_sys_amx_pays(inputs) && inputs * outputs >= (size_t) 1 << (has_many_rows ? 13 : 18);
}

// Addresses of inputs.
struct amx_input {
  size_t rows;
  // For each position of a kernel the addresses of `places_of_position` rows. NULL: rows are `stride` apart from `at` on.
  const uint8_t* const* places;
  size_t places_of_position;
  const uint8_t* at;
  size_t stride;
  size_t positions;
  // Bytes of a row at a position.
  size_t depth;
  // Added to addresses of `places` other than `zero`, which is replaced by `padding`.
  size_t offset;
  const uint8_t* zero;
  const uint8_t* padding;
};

#define AMX_TILE_ROWS 16
// Bytes of a row of a tile.
#define AMX_TILE_BYTES 64

// The operand of LDTILECFG.
struct amx_shapes {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} __attribute__((aligned(64)));

#define AMX_CONFIGURE(shapes) __asm__ volatile("ldtilecfg %0" : : "m"(*(shapes)) : "memory")

// State of tiles that one thread computes in turn, with nothing else in between.
struct amx_turn {
  // LDTILECFG takes as long as dozens of other instructions. Once is enough while nothing else can set other shapes.
  bool keeps_shapes;
  // Identifies the shapes that the registers have, or 0.
  uint32_t shapes;
  // Whether AMX is late for the whole product (`gemm_q8.h`).
  bool is_late;
};

// The shapes are state of the thread's registers, so that the variable is the thread's, too. `is_late` is here because the signature
// of XNNPACK's microkernels has no argument for it.
extern __thread struct amx_turn xnnpack_sys_amx_turn;

#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : : :)
#define AMX_LOAD(tile, from, stride) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((size_t) (stride)) : "memory")
#define AMX_STORE(tile, to, stride) \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((size_t) (stride)) : "memory")
// Adds the products of four bytes of `rows` and four of `columns` to each word of `sums`. `bytes` is `ss`, `su`, `us` or `uu`:
// whether rows and columns are signed.
#define AMX_MULTIPLY(bytes, sums, rows, columns) \
  __asm__ volatile("tdpb" #bytes "d %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sums : : :)

#endif
