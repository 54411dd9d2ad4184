// Maximum of windows of 8-bit integers: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK takes 16 channels, and nine elements of each window, repeating the first one. Without the masks of AVX512, it computes images
// with fewer channels than a vector has; results are the same.

#include "ukernels/pool_q8.h"

#include <assert.h>
#include <stdbool.h>

#include "ukernels/larger_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/math.h"
#include "xnnpack/maxpool.h"

#define UNROLL _Pragma("GCC unroll 9")

#ifdef __AVX512BW__

// `kind` and `elements` are constants wherever this is inlined, except for windows of other sizes.
static XNN_INLINE void store_largest(
    enum kind kind, size_t elements, size_t channels, const uint8_t** input, size_t input_offset, uint8_t* output,
    const struct bounds* bounds)
{
  for (size_t channel = 0; channel < channels; channel += VECTOR) {
    const size_t left = channels - channel;
    const __mmask64 lanes = left < VECTOR ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
    const size_t offset = input_offset + channel;
    vint most = _mm512_maskz_loadu_epi8(lanes, (const void*) ((uintptr_t) input[0] + offset));
    UNROLL for (size_t i = 1; i < elements; i++) {
      most = larger(kind, most, _mm512_maskz_loadu_epi8(lanes, (const void*) ((uintptr_t) input[i] + offset)));
    }
    most = smaller(kind, larger(kind, most, bounds->low), bounds->high);
    _mm512_mask_storeu_epi8(output + channel, lanes, most);
  }
}

#else

// Vectors of channels that are computed at once.
enum { VECTORS = 4 };

// `kind`, `vectors` and `elements` are constants wherever these functions are inlined, except for windows of other sizes.
static XNN_INLINE void store_vectors(
    enum kind kind, size_t vectors, size_t elements, const uint8_t** input, size_t offset, uint8_t* output,
    const struct bounds* bounds)
{
  vint most[VECTORS];
  UNROLL for (size_t i = 0; i < vectors; i++) {
    most[i] = bounds->low;
  }
  UNROLL for (size_t element = 0; element < elements; element++) {
    const uint8_t* from = (const uint8_t*) ((uintptr_t) input[element] + offset);
    UNROLL for (size_t i = 0; i < vectors; i++) {
      most[i] = larger(kind, vint_load(from + i * VECTOR), most[i]);
    }
  }
  UNROLL for (size_t i = 0; i < vectors; i++) {
    vint_store(output + i * VECTOR, smaller(kind, most[i], bounds->high));
  }
}

static XNN_INLINE void store_largest(
    enum kind kind, size_t elements, size_t channels, const uint8_t** input, size_t input_offset, uint8_t* output,
    const struct bounds* bounds)
{
  size_t channel = 0;
  for (; channel + VECTORS * VECTOR <= channels; channel += VECTORS * VECTOR) {
    store_vectors(kind, VECTORS, elements, input, input_offset + channel, output + channel, bounds);
  }
  for (; channel < channels; channel += VECTOR) {
    // The last vector overlaps the one before it.
    channel = min(channel, channels - VECTOR);
    store_vectors(kind, 1, elements, input, input_offset + channel, output + channel, bounds);
  }
}

#endif

static XNN_INLINE void pool(
    enum kind kind, size_t pixels, size_t elements, size_t channels, const uint8_t** input, size_t input_offset,
    uint8_t* output, size_t input_increment, size_t output_increment, struct bounds bounds)
{
  assert(pixels != 0 && elements != 0 && channels != 0);
  for (; pixels > 0; pixels--) {
    switch (elements) {
      case 2: store_largest(kind, 2, channels, input, input_offset, output, &bounds); break;
      case 4: store_largest(kind, 4, channels, input, input_offset, output, &bounds); break;
      case 9: store_largest(kind, 9, channels, input, input_offset, output, &bounds); break;
      default: store_largest(kind, elements, channels, input, input_offset, output, &bounds); break;
    }
    input = (const uint8_t**) ((uintptr_t) (input + pool_addresses(elements)) + input_increment);
    output += channels + output_increment;
  }
}

#ifdef __AVX512BW__
#define FEW_CHANNELS(microkernel)
#else
#define FEW_CHANNELS(microkernel) \
  if (channels < VECTOR) { \
    microkernel( \
        output_pixels, kernel_elements, channels, input, input_offset, output, input_increment, output_increment, params); \
    return; \
  }
#endif

#define POOL(kind, microkernel) \
  FEW_CHANNELS(microkernel) \
  pool( \
      kind, output_pixels, kernel_elements, channels, (const uint8_t**) input, input_offset, (uint8_t*) output, \
      input_increment, output_increment, BOUNDS_OF_BYTES(params))

S8_MAXPOOL(WITH_ISA(xnnpack_sys_s8_maxpool_minmax_ukernel__)) {
  POOL(SIGNED, xnn_s8_maxpool_minmax_ukernel_9p8x__sse41_c16);
}

U8_MAXPOOL(WITH_ISA(xnnpack_sys_u8_maxpool_minmax_ukernel__)) {
  POOL(UNSIGNED, xnn_u8_maxpool_minmax_ukernel_9p8x__sse2_c16);
}
