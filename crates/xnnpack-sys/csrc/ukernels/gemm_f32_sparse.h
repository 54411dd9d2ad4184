// Matrix products of floats with weights of which many are 0. Each instruction set compiles it, see `vector_x86.h` and `vector_neon.h`.
//
// The inputs of up to 32 rows are transposed, so that a vector has one input of several rows. It is multiplied by the weights of a
// channel that are not 0, one after the other; their places are found when weights are packed (`pack_f32_sparse.c`).
//
// 0 times an infinity or NaN is NaN. If an input of the rows is not finite, all weights are multiplied.
//
// `vectors` and `channels` are constants wherever these functions are inlined, so that loops over them are unrolled and arrays become
// registers.

#ifndef ISA
#error "define ISA"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/gemm_f32_sparse_api.h"
#include "ukernels/microkernel.h"
#include "ukernels/quad_f32.h"
#include "ukernels/with_isa.h"
#ifdef __aarch64__
#include "ukernels/vector_neon.h"
#else
#include "ukernels/vector_x86.h"
#endif
#include "xnnpack/common.h"
#include "xnnpack/math.h"

#define ROWS F32_SPARSE_ROWS
#define VECTORS (ROWS / VECTOR_LANES)
// Channels whose sums of all rows are in registers at once: additions take four cycles, and two can start in each.
#define CHANNELS (8 / VECTORS)
// Rows, inputs and channels of a transposition.
#define SIDE 4
#define UNROLL _Pragma("GCC unroll 8")

// The inputs of all rows, for each channel of the input, and the results of all rows, for a few channels of the output.
typedef float columns[F32_SPARSE_INPUTS][ROWS];
typedef float results[SIDE][ROWS];

// Transposes the inputs of `mr` rows, of which the last is repeated. Returns whether all are finite; it may take large ones for infinities.
static bool transpose(size_t mr, size_t depth, const float* a, size_t a_stride, columns columns) {
  quad sum = quad_zero();
  for (size_t row = 0; row < mr; row += SIDE) {
    const float* from[SIDE];
    UNROLL for (size_t i = 0; i < SIDE; i++) {
      from[i] = (const float*) ((uintptr_t) a + min(row + i, mr - 1) * a_stride);
    }
    size_t k = 0;
    for (; k + SIDE <= depth; k += SIDE) {
      quad x[SIDE];
      quads_of_rows(from, k, x);
      UNROLL for (size_t i = 0; i < SIDE; i++) {
        quad_store(&columns[k + i][row], x[i]);
      }
      sum = quad_add(sum, quad_add(quad_add(x[0], x[1]), quad_add(x[2], x[3])));
    }
    for (; k < depth; k++) {
      const quad x = {from[0][k], from[1][k], from[2][k], from[3][k]};
      quad_store(&columns[k][row], x);
      sum = quad_add(sum, x);
    }
  }
  return quad_is_finite(sum);
}

// Computes an address once. GCC would compute a part of it for each vector, and could not load two vectors at once.
static XNN_INLINE const float* one_address(const float* at) {
#if defined(__GNUC__) && defined(__aarch64__)
  __asm__("" : "+r"(at));
#endif
  return at;
}

// The packed numbers of a channel, and the inputs that are multiplied.
struct channel {
  const float* weights;
  const uint16_t* places;
  size_t count;
};

// Adds the products of an input of each row with the weight of one channel.
static XNN_INLINE void multiply(
    size_t vectors, const columns columns, const struct channel* channel, size_t place, vfloat sums[VECTORS])
{
  const size_t k = channel->places[place];
  const vfloat weight = VINT(set1_ps, channel->weights[k]);
  const float* const column = one_address(columns[k]);
  UNROLL for (size_t i = 0; i < vectors; i++) {
    sums[i] = vfloat_add_product(sums[i], VINT(loadu_ps, &column[i * VECTOR_LANES]), weight);
  }
}

// Computes some channels for all rows. `every` are the places of all weights if all are to be multiplied, and NULL otherwise.
static XNN_INLINE void compute(
    size_t vectors, size_t channels, const columns columns, size_t depth, const uint16_t* every, const float* w, vfloat least,
    vfloat most, float at[][ROWS])
{
  struct channel channel[CHANNELS];
  vfloat sums[CHANNELS][VECTORS];
  size_t shared = depth;
  UNROLL for (size_t j = 0; j < channels; j++) {
    const float* packed = f32_sparse_channel(w, j, depth);
    const uint16_t* places = f32_sparse_places_of(packed, depth);
    const float* const weights = one_address(packed + 1);
    channel[j] = every != NULL ? (struct channel) {weights, every, depth}
                               : (struct channel) {weights, places + 1, places[0]};
    shared = min(shared, channel[j].count);
    UNROLL for (size_t i = 0; i < vectors; i++) {
      sums[j][i] = VINT(set1_ps, packed[0]);
    }
  }
  for (size_t place = 0; place < shared; place++) {
    UNROLL for (size_t j = 0; j < channels; j++) {
      multiply(vectors, columns, &channel[j], place, sums[j]);
    }
  }
  UNROLL for (size_t j = 0; j < channels; j++) {
    for (size_t place = shared; channels > 1 && place < channel[j].count; place++) {
      multiply(vectors, columns, &channel[j], place, sums[j]);
    }
    UNROLL for (size_t i = 0; i < vectors; i++) {
      vfloat_store(&at[j][i * VECTOR_LANES], vfloat_clamp(sums[j][i], least, most), VECTOR_LANES);
    }
  }
}

// Stores the results of up to four channels in each row.
static XNN_INLINE void store(size_t mr, size_t channels, const results results, float* c, size_t cm_stride) {
  size_t row = 0;
  for (; channels == SIDE && row + SIDE <= mr; row += SIDE) {
    const float* const from[SIDE] = {results[0], results[1], results[2], results[3]};
    quad x[SIDE];
    quads_of_rows(from, row, x);
    UNROLL for (size_t i = 0; i < SIDE; i++) {
      quad_store((float*) ((uintptr_t) c + i * cm_stride), x[i]);
    }
    c = (float*) ((uintptr_t) c + SIDE * cm_stride);
  }
  for (; row < mr; row++) {
    for (size_t i = 0; i < channels; i++) {
      c[i] = results[i][row];
    }
    c = (float*) ((uintptr_t) c + cm_stride);
  }
}

// Computes all channels of up to `vectors` vectors of rows.
static XNN_INLINE void product(
    size_t vectors, size_t mr, size_t nc, const columns columns, size_t depth, const uint16_t* every, const float* w, float* c,
    size_t cm_stride, const union xnn_f32_minmax_params* params)
{
  XNN_ALIGN(64) results results;
  const vfloat least = VINT(set1_ps, params->scalar.min);
  const vfloat most = VINT(set1_ps, params->scalar.max);
  for (; nc != 0; nc -= min(nc, SIDE)) {
    const size_t channels = min(nc, SIDE);
    for (size_t i = 0; i < channels;) {
      const size_t count = channels - i >= CHANNELS ? CHANNELS : 1;
      if (count == CHANNELS) {
        compute(vectors, CHANNELS, columns, depth, every, w, least, most, &results[i]);
      } else {
        compute(vectors, 1, columns, depth, every, w, least, most, &results[i]);
      }
      w = f32_sparse_channel(w, count, depth);
      i += count;
    }
    store(mr, channels, (const float(*)[ROWS]) results, c, cm_stride);
    c += channels;
  }
}

#define PRODUCT(vectors) \
  case vectors: \
    product(vectors, mr, nc, (const float(*)[ROWS]) columns, depth, every, w, c, cm_stride, params); \
    break

F32_GEMM(WITH_ISA(xnnpack_sys_f32_sparse_gemm_minmax_ukernel_32x1__)) {
  ASSERT_GEMM(ROWS, sizeof(float));
  const size_t depth = kc / sizeof(float);
  assert(depth <= F32_SPARSE_INPUTS);
  assert(cn_stride == sizeof(float));
  (void) cn_stride;
  XNN_ALIGN(64) columns columns;
  uint16_t places[F32_SPARSE_INPUTS];
  const uint16_t* every = NULL;
  if XNN_UNLIKELY(!transpose(mr, depth, a, a_stride, columns)) {
    for (size_t k = 0; k < depth; k++) {
      places[k] = (uint16_t) k;
    }
    every = places;
  }
  switch (divide_round_up(mr, VECTOR_LANES)) {
    PRODUCT(1);
    PRODUCT(2);
    PRODUCT(3);
    PRODUCT(4);
#ifndef __AVX__
    PRODUCT(5);
    PRODUCT(6);
    PRODUCT(7);
    PRODUCT(8);
#endif
    default:
      XNN_UNREACHABLE;
  }
}
