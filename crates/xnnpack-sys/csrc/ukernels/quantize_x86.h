// Quantization at run time: included by a file for each instruction set, which defines `ISA`.
//
// - Range of a row: XNNPACK's ignores NaN (`special_f32.c`). Here two vectors are compared at once.
// - Conversion of an image as in TFLite's reference kernels (`quantize_qd8.c`), with four vectors at once.

#include <assert.h>
#include <math.h>
#include <string.h>

#include "hooks/quantize_qd8.h"
#include "ukernels/unary_f32.h"
#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

#ifdef __AVX2__
#define COMPARE_UNORDERED(a, b) _mm256_cmp_ps(a, b, _CMP_UNORD_Q)
#else
#define COMPARE_UNORDERED(a, b) _mm_cmpunord_ps(a, b)
#endif

// The smallest and the largest element in each lane, and whether one of them was NaN.
struct range {
  vfloat least;
  vfloat most;
  vfloat unordered;
};

static XNN_INLINE void widen(struct range* range, vfloat a, vfloat b) {
  range->least = VINT(min_ps, range->least, VINT(min_ps, a, b));
  range->most = VINT(max_ps, range->most, VINT(max_ps, a, b));
  range->unordered = VINT(or_ps, range->unordered, COMPARE_UNORDERED(a, b));
}

static XNN_INLINE vfloat load_at(const float* from, size_t vector) { return VINT(loadu_ps, from + vector * VECTOR_LANES); }

F32_UNARY(WITH_ISA(xnnpack_sys_f32_rminmax_ukernel__)) {
  assert(batch != 0 && batch % sizeof(float) == 0);
  const float* from = input;
  size_t count = batch / sizeof(float);
  const vfloat first = VINT(set1_ps, *from);
  struct range even = {.least = first, .most = first, .unordered = VINT(set1_ps, 0)};
  struct range odd = even;
  for (; count >= 4 * VECTOR_LANES; count -= 4 * VECTOR_LANES, from += 4 * VECTOR_LANES) {
    widen(&even, load_at(from, 0), load_at(from, 1));
    widen(&odd, load_at(from, 2), load_at(from, 3));
  }
  for (; count >= VECTOR_LANES; count -= VECTOR_LANES, from += VECTOR_LANES) {
    const vfloat x = load_at(from, 0);
    widen(&even, x, x);
  }
  float rest[VECTOR_LANES];
  VINT(storeu_ps, rest, first);
  memcpy(rest, from, count * sizeof(float));
  widen(&even, load_at(rest, 0), first);
  float* range = output;
  if (VINT(movemask_ps, VINT(or_ps, even.unordered, odd.unordered)) != 0) {
    range[0] = range[1] = NAN;
    return;
  }
  // The signs of the smallest elements are changed, so that both are maxima.
  const vfloat least = VINT(xor_ps, VINT(min_ps, even.least, odd.least), VINT(set1_ps, -0.0f));
  const vfloat most = VINT(max_ps, even.most, odd.most);
  const vfloat low = VINT(max_ps, VINT(unpacklo_ps, least, most), VINT(unpackhi_ps, least, most));
#ifdef __AVX2__
  const __m128 pairs = _mm_max_ps(_mm256_castps256_ps128(low), _mm256_extractf128_ps(low, 1));
#else
  const __m128 pairs = low;
#endif
  const __m128 both = _mm_max_ps(pairs, _mm_movehl_ps(pairs, pairs));
  _mm_storel_pi((__m64*) range, _mm_xor_ps(both, _mm_setr_ps(-0.0f, 0, 0, 0)));
}

// Multiplies, clamps, and rounds ties away from 0. NaN becomes `low`.
static XNN_INLINE vint to_integers(vfloat x, vfloat scale, vfloat low, vfloat high) {
  x = VINT(min_ps, VINT(max_ps, VINT(mul_ps, x, scale), low), high);
  const vfloat sign = VINT(and_ps, x, VINT(set1_ps, -0.0f));
  return VINT(cvttps_epi32, VINT(add_ps, x, VINT(or_ps, sign, VINT(set1_ps, 0.5f))));
}

// Joins the lowest bytes of words, which are in the range of int8.
static XNN_INLINE vint join_bytes(vint a, vint b, vint c, vint d) {
  const vint bytes = VINT(packs_epi16, VINT(packs_epi32, a, b), VINT(packs_epi32, c, d));
#ifdef __AVX2__
  // Instructions join halves of vectors.
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#else
  return bytes;
#endif
}

void WITH_ISA(xnnpack_sys_f32_to_qd8__)(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset)
{
  const vfloat scales = VINT(set1_ps, scale);
  const vfloat low = VINT(set1_ps, (float) (INT8_MIN - zero_point));
  const vfloat high = VINT(set1_ps, (float) (INT8_MAX - zero_point));
  const vint zero_points = VINT(set1_epi32, zero_point);
  for (; count >= 4 * VECTOR_LANES; count -= 4 * VECTOR_LANES) {
    vint words[4];
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
      words[i] = VINT(add_epi32, to_integers(load_at(input, i), scales, low, high), zero_points);
    }
    const vint bytes = join_bytes(words[0], words[1], words[2], words[3]);
    vint_store(output, VINT(add_epi8, bytes, VINT(set1_epi8, (int8_t) (uint8_t) offset)));
    input += 4 * VECTOR_LANES;
    output += 4 * VECTOR_LANES;
  }
  xnnpack_sys_portable_f32_to_qd8(count, input, output, scale, zero_point, offset);
}
