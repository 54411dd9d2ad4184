// Matrix products of 8-bit integers with vectors of 128 bits, see `gemm_q8_bytes.h`: included by a file for each instruction set, which
// defines `ISA`.

#define ROWS Q8_SSE41_ROWS

#include "ukernels/gemm_q8_bytes.h"

_Static_assert(CHANNELS == Q8_SSE41_CHANNELS, "the tile");

MICROKERNELS(1, 1x8c4)
MICROKERNELS(ROWS, 4x8c4)
DYNAMIC_MICROKERNELS(1, 1x8c4)
DYNAMIC_MICROKERNELS(ROWS, 4x8c4)
PLAIN_MICROKERNELS(1, 1x8c4)
PLAIN_MICROKERNELS(ROWS, 4x8c4)
