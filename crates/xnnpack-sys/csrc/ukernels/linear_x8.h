// Functions of bytes that are linear but for rounding and saturation, such as conversions to another scale: see `linear_x8.c`.

#ifndef XNNPACK_SYS_LINEAR_X8_H
#define XNNPACK_SYS_LINEAR_X8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The function of a byte x, in integers of 16 bits without signs:
//
//     y = ((x ^ input_mask) * 256 + start) * factor / 2^16        rounded down
//     result = (y + more - less) * unit / 2^16 ^ output_mask      saturated after each step, rounded down
//
// Masks make signed bytes unsigned, and falling functions rising ones.
struct linear_form {
  uint16_t factor;
  uint16_t more;
  uint16_t less;
  uint16_t unit;
  uint8_t start;
  uint8_t input_mask;
  uint8_t output_mask;
};

enum {
  XNNPACK_SYS_TABLE_RESULTS = 256,
  // A table has room for a form behind its results.
  XNNPACK_SYS_TABLE_BYTES = XNNPACK_SYS_TABLE_RESULTS + sizeof(struct linear_form),
};

// Stores the form that has all results of a table behind them, if there is one.
bool xnnpack_sys_find_linear_form(uint8_t* table);

// Microkernels with the signature of those for tables. They compute whole vectors by the form behind the table.
#define X8_LINEAR(isa) \
  void xnnpack_sys_x8_linear_ukernel__##isa(size_t batch, const uint8_t* input, uint8_t* output, const uint8_t* table)

X8_LINEAR(sse41);
X8_LINEAR(avx2);

#endif
