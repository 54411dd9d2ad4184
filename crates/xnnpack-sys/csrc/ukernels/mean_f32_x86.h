// Sums and means over rows of floats, see `mean_f32.h`: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernel reads seven rows at once. Here one row is read after the other, as they are in memory, which takes two thirds
// of the time if they do not stay in the first-level cache, and adds elements in the order of TFLite's reference kernels.

#include "ukernels/mean_f32.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

// Channels whose sums are in registers.
#define CHANNELS 64
enum { VECTORS = CHANNELS / VECTOR_LANES };

#define UNROLL _Pragma("GCC unroll 8")

struct rows {
  size_t count;
  const float* at;
  // In bytes.
  size_t stride;
};

// Adds the sums of some channels, or their means, to `output`; `some` are those of the last vector. `vectors` is a constant wherever
// this function is inlined, so that sums become registers.
static XNN_INLINE void add_channels(
    size_t vectors, size_t some, struct rows rows, struct xnnpack_sys_scaling scaling, float* output)
{
  vfloat sums[VECTORS];
  UNROLL for (size_t i = 0; i < vectors; i++) {
    sums[i] = VINT(setzero_ps);
  }
  for (; rows.count != 0; rows.count--) {
    UNROLL for (size_t i = 0; i < vectors; i++) {
      const vfloat x = vfloat_load(rows.at + i * VECTOR_LANES, i + 1 == vectors ? some : VECTOR_LANES);
      sums[i] = VINT(add_ps, sums[i], x);
    }
    rows.at = (const float*) ((uintptr_t) rows.at + rows.stride);
  }
  const vfloat factor = VINT(set1_ps, scaling.factor);
  UNROLL for (size_t i = 0; i < vectors; i++) {
    const size_t count = i + 1 == vectors ? some : VECTOR_LANES;
    float* to = output + i * VECTOR_LANES;
    const vfloat scaled = scaling.divides ? VINT(div_ps, sums[i], factor) : VINT(mul_ps, sums[i], factor);
    vfloat_store(to, VINT(add_ps, vfloat_load(to, count), scaled), count);
  }
}

#define ADD_CHANNELS(vectors) \
  for (; vectors <= VECTORS && channels >= (vectors) * VECTOR_LANES; channels -= (vectors) * VECTOR_LANES) { \
    add_channels(vectors, VECTOR_LANES, all, scaling, to); \
    all.at += (vectors) * VECTOR_LANES; \
    to += (vectors) * VECTOR_LANES; \
  }

F32_RDSUM(WITH_ISA(xnnpack_sys_f32_rdsum_ukernel__)) {
  assert(rows != 0 && channels != 0);
  const struct xnnpack_sys_scaling scaling = xnnpack_sys_scaling(params);
  struct rows all = {.count = rows, .at = input, .stride = input_stride};
  float* to = output;
  ADD_CHANNELS(8)
  ADD_CHANNELS(4)
  ADD_CHANNELS(2)
  ADD_CHANNELS(1)
  if (channels != 0) {
    add_channels(1, channels, all, scaling, to);
  }
}
