// Maxima of whole images, for each channel: included by a file for each instruction set, which defines `ISA`.
//
// Reductions are pooled this way, too: a row is an image of one channel, and a minimum is a maximum of negative elements. XNNPACK's microkernels read an address for each pixel, and take
// four or 16 channels at a time in passes of eight pixels through a buffer. Here the pixels of an image follow each other in memory.
// Results are the same. NaN is ignored, as in TFLite's reference kernels.

#include "ukernels/pool_images_api.h"

#include <assert.h>
#include <string.h>

#include "ukernels/larger_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/math.h"
#include "xnnpack/microparams.h"

// Maxima that do not depend on each other, so that the processor computes several at once, and vectors of neighbouring channels among
// them.
enum { CHAINS = 8, VECTORS = 4 };

#define UNROLL _Pragma("GCC unroll 8")

// Elements of an image. If they `are_negative`, the maximum is that of their negatives: the negative of their minimum.
struct elements {
  enum kind kind;
  bool are_negative;
};

// The larger of elements and of those found before, or the smaller.
static XNN_INLINE vint better(struct elements of, vint elements, vint found) {
  return of.are_negative ? smaller(of.kind, elements, found) : larger(of.kind, elements, found);
}

// Negates elements. Of integers all bits are flipped: the negative has a zero point of its own.
static XNN_INLINE vint negated(struct elements of, vint elements) {
  if (!of.are_negative) {
    return elements;
  }
  const vint bits = VINT(set1_epi32, of.kind == FLOATS ? INT32_MIN : -1);
  return vint_of_bits(VINT(xor_ps, vfloat_of_bits(elements), vfloat_of_bits(bits)));
}

// `kind`, `of`, `vectors` and `chains` are constants wherever these functions are inlined.
static XNN_INLINE __m128i larger_of_16(enum kind kind, __m128i a, __m128i b) {
  switch (kind) {
    case FLOATS: return _mm_castps_si128(_mm_max_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)));
    case SIGNED: return _mm_max_epi8(a, b);
    default: return _mm_max_epu8(a, b);
  }
}

// Loads bytes of which a vector has more; the others are those of `low`.
static XNN_INLINE vint load_some(const uint8_t* from, size_t bytes, vint low) {
#ifdef __AVX512BW__
  return _mm512_mask_loadu_epi8(low, UINT64_MAX >> (VECTOR - bytes), from);
#else
  uint8_t some[VECTOR];
  vint_store(some, low);
  memcpy(some, from, bytes);
  return vint_load(some);
#endif
}

// Finds the maxima of `low` and a number of vectors side by side, over pixels that are `stride` bytes apart. If elements are negative,
// `low` is, too, and the result is not negated.
static XNN_INLINE void find_largest(
    struct elements of, size_t vectors, const uint8_t* from, size_t stride, size_t pixels, vint low, vint* most)
{
  const size_t chains = CHAINS / vectors;
  vint found[CHAINS][VECTORS];
  UNROLL for (size_t chain = 0; chain < chains; chain++) {
    UNROLL for (size_t i = 0; i < vectors; i++) {
      found[chain][i] = low;
    }
  }
  for (; pixels >= chains; pixels -= chains) {
    UNROLL for (size_t chain = 0; chain < chains; chain++) {
      UNROLL for (size_t i = 0; i < vectors; i++) {
        found[chain][i] = better(of, vint_load(from + i * VECTOR), found[chain][i]);
      }
      from += stride;
    }
  }
  for (; pixels > 0; pixels--) {
    UNROLL for (size_t i = 0; i < vectors; i++) {
      found[0][i] = better(of, vint_load(from + i * VECTOR), found[0][i]);
    }
    from += stride;
  }
  UNROLL for (size_t i = 0; i < vectors; i++) {
    UNROLL for (size_t half = chains / 2; half > 0; half /= 2) {
      UNROLL for (size_t chain = 0; chain < half; chain++) {
        found[chain][i] = better(of, found[chain + half][i], found[chain][i]);
      }
    }
    most[i] = found[0][i];
  }
}

// Stores the maxima of a number of vectors of channels.
static XNN_INLINE void store_channels(
    struct elements of, size_t vectors, const uint8_t* from, size_t stride, size_t pixels, const struct bounds* bounds,
    uint8_t* to)
{
  vint most[VECTORS];
  find_largest(of, vectors, from, stride, pixels, bounds->low, most);
  UNROLL for (size_t i = 0; i < vectors; i++) {
    vint_store(to + i * VECTOR, smaller(of.kind, negated(of, most[i]), bounds->high));
  }
}

// Stores the maxima of less than a vector of channels. Vectors have elements of the next pixels behind them, which are not stored.
static XNN_INLINE void store_few_channels(
    struct elements of, const uint8_t* from, size_t stride, size_t pixels, const struct bounds* bounds, uint8_t* to)
{
  const size_t bytes = stride * pixels;
  const size_t whole = bytes >= VECTOR ? (bytes - VECTOR) / stride + 1 : 0;
  vint most;
  find_largest(of, 1, from, stride, whole, bounds->low, &most);
  for (size_t pixel = whole; pixel < pixels; pixel++) {
    most = better(of, load_some(from + pixel * stride, stride, bounds->low), most);
  }
  uint8_t some[VECTOR];
  vint_store(some, smaller(of.kind, negated(of, most), bounds->high));
  memcpy(to, some, stride);
}

// Stores the maximum of a row.
static XNN_INLINE void store_row(
    struct elements of, const uint8_t* from, size_t bytes, const struct bounds* bounds, uint8_t* to)
{
  const size_t whole = bytes / VECTOR;
  const size_t rest = bytes % VECTOR;
  vint most;
  find_largest(of, 1, from, VECTOR, whole, bounds->low, &most);
  if (rest != 0) {
    // The last vector overlaps the one before it.
    const vint last = whole != 0 ? vint_load(from + bytes - VECTOR) : load_some(from, rest, bounds->low);
    most = better(of, last, most);
  }
  most = smaller(of.kind, negated(of, most), bounds->high);
  __m128i parts[VECTOR / sizeof(__m128i)];
  vint_store(parts, most);
  __m128i lanes = parts[0];
  UNROLL for (size_t i = 1; i < VECTOR / sizeof(__m128i); i++) {
    lanes = larger_of_16(of.kind, parts[i], lanes);
  }
  lanes = larger_of_16(of.kind, _mm_srli_si128(lanes, 8), lanes);
  lanes = larger_of_16(of.kind, _mm_shuffle_epi32(lanes, 1), lanes);
  if (of.kind != FLOATS) {
    lanes = larger_of_16(of.kind, _mm_srli_epi32(lanes, 16), lanes);
    lanes = larger_of_16(of.kind, _mm_srli_epi16(lanes, 8), lanes);
  }
  const int32_t result = _mm_cvtsi128_si32(lanes);
  memcpy(to, &result, of.kind == FLOATS ? sizeof(float) : 1);
}

static XNN_INLINE void pool(
    struct elements of, size_t images, size_t pixels, size_t channels, const uint8_t* input, uint8_t* output,
    struct bounds bounds)
{
  assert(images != 0 && pixels != 0 && channels != 0);
  bounds.low = negated(of, bounds.low);
  const size_t element = of.kind == FLOATS ? sizeof(float) : 1;
  const size_t stride = channels * element;
  for (; images > 0; images--) {
    if (channels == 1) {
      store_row(of, input, pixels * element, &bounds, output);
    } else if (stride < VECTOR) {
      store_few_channels(of, input, stride, pixels, &bounds, output);
    } else {
      size_t at = 0;
      for (; at + VECTORS * VECTOR <= stride; at += VECTORS * VECTOR) {
        store_channels(of, VECTORS, input + at, stride, pixels, &bounds, output + at);
      }
      for (; at < stride; at += VECTOR) {
        // The last vector overlaps the one before it.
        at = min(at, stride - VECTOR);
        store_channels(of, 1, input + at, stride, pixels, &bounds, output + at);
      }
    }
    input += pixels * stride;
    output += stride;
  }
}

#define IMAGE_MAXIMA(type, kind, parameters, bounds_of) \
  IMAGE_MAX(WITH_ISA(xnnpack_sys_##type##_image_max_ukernel__)) { \
    const struct elements of = {kind, false}; \
    pool(of, images, pixels, channels, input, output, bounds_of((const parameters*) params)); \
  } \
  IMAGE_MAX(WITH_ISA(xnnpack_sys_##type##_image_max_of_negative_ukernel__)) { \
    const struct elements of = {kind, true}; \
    pool(of, images, pixels, channels, input, output, bounds_of((const parameters*) params)); \
  }

// AVX2 has no other instructions for floats than AVX.
#if defined(__AVX512F__) || !defined(__AVX2__)
IMAGE_MAXIMA(f32, FLOATS, union xnn_f32_minmax_params, BOUNDS_OF_FLOATS)
#endif

// AVX512 compares half as many vectors of bytes at once, and is slower for rows.
#if !defined(__AVX512F__) && !defined(WITHOUT_INTEGERS)
IMAGE_MAXIMA(s8, SIGNED, struct xnn_s8_minmax_params, BOUNDS_OF_BYTES)
IMAGE_MAXIMA(u8, UNSIGNED, struct xnn_u8_minmax_params, BOUNDS_OF_BYTES)
#endif
