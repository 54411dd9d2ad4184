// Softmax of short rows of floats: included behind `unary_f32_x86.h` by the files for AVX, AVX2 and AVX512F.
//
// XNNPACK has a microkernel for each of the maximum, the exponentials and the quotients of a row, and each of them waits for the last one.
// Here a row stays in registers, and the processor computes the next one while it waits. A row with NaN or infinity becomes NaN, as in
// TFLite's reference kernels.

#include "ukernels/softmax_f32.h"

// Vectors of the longest row.
#define MAX_VECTORS (SOFTMAX_F32_FLOATS(sizeof(vfloat)) / VECTOR_LANES)
#define UNROLL_ROW _Pragma("GCC unroll 16")

#ifdef __AVX512F__

static XNN_INLINE vfloat swap_halves(vfloat x) { return _mm512_shuffle_f32x4(x, x, 0x4E); }
static XNN_INLINE vfloat swap_quarters(vfloat x) { return _mm512_shuffle_f32x4(x, x, 0xB1); }

// Loads `count` floats; others are -infinity.
static XNN_INLINE vfloat load_some(const float* from, size_t count) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), (__mmask16) ((1 << count) - 1), from);
}

static XNN_INLINE __m256 lower_half(vfloat x) { return _mm512_castps512_ps256(x); }
static XNN_INLINE __m256 upper_half(vfloat x) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)); }

// Powers that are no normal floats are 0.
static XNN_INLINE vfloat exponential_of_negative(vfloat x) {
  const __m512 least = _mm512_set1_ps(-87.0f);
  const __mmask16 are_normal = _mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ);
  return _mm512_maskz_mov_ps(are_normal, exponential(_mm512_max_ps(least, x)));
}

#else

static XNN_INLINE vfloat swap_halves(vfloat x) { return _mm256_permute2f128_ps(x, x, 1); }
static XNN_INLINE vfloat swap_quarters(vfloat x) { return x; }

static XNN_INLINE vfloat load_some(const float* from, size_t count) {
  static const int32_t some[2 * VECTOR_LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const __m256i mask = _mm256_loadu_si256((const __m256i*) (some + VECTOR_LANES - count));
  return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask));
}

// Powers below 2^-124 are 0.
static XNN_INLINE vfloat exponential_of_negative(vfloat x) {
  return _mm256_and_ps(ordinary_exponential(x), vfloat_not_less(x, _mm256_set1_ps(-86.0f)));
}

#endif

// Stores `count` floats, without a mask: if rows are computed in place, the next one would wait for a store whose vector reaches into it.
static XNN_INLINE void store_some(float* to, vfloat x, size_t count) {
  if (count == VECTOR_LANES) {
    VINT(storeu_ps, to, x);
    return;
  }
#ifdef __AVX512F__
  __m256 eight = lower_half(x);
  if ((count & 8) != 0) {
    _mm256_storeu_ps(to, eight);
    eight = upper_half(x);
    to += 8;
  }
#else
  const __m256 eight = x;
#endif
  __m128 four = _mm256_castps256_ps128(eight);
  if ((count & 4) != 0) {
    _mm_storeu_ps(to, four);
    four = _mm256_extractf128_ps(eight, 1);
    to += 4;
  }
  if ((count & 2) != 0) {
    _mm_storel_pi((__m64*) to, four);
    four = _mm_movehl_ps(four, four);
    to += 2;
  }
  if ((count & 1) != 0) {
    _mm_store_ss(to, four);
  }
}

#define IN_EACH_LANE(function) \
  x = function(x, swap_halves(x)); \
  x = function(x, swap_quarters(x)); \
  x = function(x, VINT(permute_ps, x, 0x4E)); \
  return function(x, VINT(permute_ps, x, 0xB1))

static XNN_INLINE vfloat larger(vfloat a, vfloat b) { return VINT(max_ps, a, b); }
static XNN_INLINE vfloat largest_lane(vfloat x) { IN_EACH_LANE(larger); }

static XNN_INLINE vfloat plus(vfloat a, vfloat b) { return VINT(add_ps, a, b); }
static XNN_INLINE vfloat sum_of_lanes(vfloat x) {
#ifdef __AVX512F__
  IN_EACH_LANE(plus);
#else
  x = plus(x, swap_halves(x));
  x = plus(x, VINT(permute_ps, x, 0x4E));
  return plus(x, VINT(permute_ps, x, 0xB1));
#endif
}

// Combines the vectors of a row, neighbours first: `vectors` is a constant.
static XNN_INLINE vfloat combine(vfloat (*function)(vfloat, vfloat), size_t vectors, const vfloat row[MAX_VECTORS]) {
  vfloat all[MAX_VECTORS];
  UNROLL_ROW for (size_t i = 0; i < vectors; i++) {
    all[i] = row[i];
  }
  UNROLL_ROW for (size_t apart = 1; apart < MAX_VECTORS; apart *= 2) {
    UNROLL_ROW for (size_t i = 0; i + apart < vectors; i += 2 * apart) {
      all[i] = function(all[i], all[i + apart]);
    }
  }
  return all[0];
}

// The last vector has `last` floats.
static XNN_INLINE void softmax_row(size_t vectors, size_t last, const float* from, float* to) {
  vfloat row[MAX_VECTORS];
  UNROLL_ROW for (size_t i = 0; i + 1 < vectors; i++) {
    row[i] = VINT(loadu_ps, from + i * VECTOR_LANES);
  }
  row[vectors - 1] = load_some(from + (vectors - 1) * VECTOR_LANES, last);
  const vfloat most = largest_lane(combine(larger, vectors, row));
  UNROLL_ROW for (size_t i = 0; i < vectors; i++) {
    row[i] = exponential_of_negative(VINT(sub_ps, row[i], most));
  }
  const vfloat factor = VINT(div_ps, VINT(set1_ps, 1.0f), sum_of_lanes(combine(plus, vectors, row)));
  UNROLL_ROW for (size_t i = 0; i + 1 < vectors; i++) {
    VINT(storeu_ps, to + i * VECTOR_LANES, VINT(mul_ps, row[i], factor));
  }
  store_some(to + (vectors - 1) * VECTOR_LANES, VINT(mul_ps, row[vectors - 1], factor), last);
}

#define ROWS_OF(vectors) \
  case vectors: \
    for (; rows > 0; rows--) { \
      softmax_row(vectors, last, input, output); \
      input = (const float*) ((uintptr_t) input + input_stride); \
      output = (float*) ((uintptr_t) output + output_stride); \
    } \
    return

F32_SOFTMAX_ROWS(WITH_ISA(xnnpack_sys_f32_softmax_rows__)) {
  assert(count != 0 && count <= SOFTMAX_F32_FLOATS(sizeof(vfloat)));
  const size_t last = (count - 1) % VECTOR_LANES + 1;
  switch ((count - 1) / VECTOR_LANES + 1) {
    ROWS_OF(1);
    ROWS_OF(2);
    ROWS_OF(3);
    ROWS_OF(4);
    ROWS_OF(5);
    ROWS_OF(6);
    ROWS_OF(7);
    ROWS_OF(8);
#ifdef __AVX512F__
    ROWS_OF(9);
    ROWS_OF(10);
    ROWS_OF(11);
    ROWS_OF(12);
    ROWS_OF(13);
    ROWS_OF(14);
    ROWS_OF(15);
    ROWS_OF(16);
#endif
  }
}
