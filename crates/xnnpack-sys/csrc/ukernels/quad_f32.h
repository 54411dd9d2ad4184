// Four floats, however wide the vectors of an instruction set are.

#ifndef XNNPACK_SYS_QUAD_F32_H
#define XNNPACK_SYS_QUAD_F32_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack/common.h"

#ifdef __aarch64__

#include <arm_neon.h>

typedef float32x4_t quad;

static XNN_INLINE quad quad_zero(void) { return vdupq_n_f32(0.0f); }
static XNN_INLINE quad quad_add(quad a, quad b) { return vaddq_f32(a, b); }
static XNN_INLINE void quad_store(float* to, quad values) { vst1q_f32(to, values); }

// Whether none is an infinity or NaN.
static XNN_INLINE bool quad_is_finite(quad values) {
  const quad zeros = vmulq_n_f32(values, 0.0f);
  return vminvq_u32(vceqq_f32(zeros, zeros)) != 0;
}

// Returns four floats of each of four rows, from `at` on, transposed.
static XNN_INLINE void quads_of_rows(const float* const rows[4], size_t at, quad x[4]) {
  const quad a = vld1q_f32(rows[0] + at), b = vld1q_f32(rows[1] + at);
  const quad c = vld1q_f32(rows[2] + at), d = vld1q_f32(rows[3] + at);
  const float64x2_t ab0 = vreinterpretq_f64_f32(vtrn1q_f32(a, b)), ab1 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
  const float64x2_t cd0 = vreinterpretq_f64_f32(vtrn1q_f32(c, d)), cd1 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
  x[0] = vreinterpretq_f32_f64(vtrn1q_f64(ab0, cd0));
  x[1] = vreinterpretq_f32_f64(vtrn1q_f64(ab1, cd1));
  x[2] = vreinterpretq_f32_f64(vtrn2q_f64(ab0, cd0));
  x[3] = vreinterpretq_f32_f64(vtrn2q_f64(ab1, cd1));
}

#else

#include <immintrin.h>

typedef __m128 quad;

static XNN_INLINE quad quad_zero(void) { return _mm_setzero_ps(); }
static XNN_INLINE quad quad_add(quad a, quad b) { return _mm_add_ps(a, b); }
static XNN_INLINE void quad_store(float* to, quad values) { _mm_storeu_ps(to, values); }

// Whether none is an infinity or NaN.
static XNN_INLINE bool quad_is_finite(quad values) {
  const quad zeros = _mm_mul_ps(values, _mm_setzero_ps());
  return _mm_movemask_ps(_mm_cmpunord_ps(zeros, zeros)) == 0;
}

// Returns four floats of each of four rows, from `at` on, transposed. Two halves of a vector are loaded with one shuffle, not two.
static XNN_INLINE void quads_of_rows(const float* const rows[4], size_t at, quad x[4]) {
  _Pragma("GCC unroll 2") for (size_t half = 0; half < 4; half += 2) {
    quad pair[2];
    _Pragma("GCC unroll 2") for (size_t i = 0; i < 2; i++) {
      const quad first = _mm_castpd_ps(_mm_load_sd((const double*) (rows[2 * i] + at + half)));
      pair[i] = _mm_loadh_pi(first, (const __m64*) (rows[2 * i + 1] + at + half));
    }
    x[half] = _mm_shuffle_ps(pair[0], pair[1], _MM_SHUFFLE(2, 0, 2, 0));
    x[half + 1] = _mm_shuffle_ps(pair[0], pair[1], _MM_SHUFFLE(3, 1, 3, 1));
  }
}

#endif
#endif
