// Vectors of floats for NEON, with the names of `vector_x86.h`: microkernels that use only these names are compiled for both.

#ifndef XNNPACK_SYS_VECTOR_NEON_H
#define XNNPACK_SYS_VECTOR_NEON_H

#include <stddef.h>
#include <string.h>

#include <arm_neon.h>

#include "xnnpack/common.h"

typedef float32x4_t vfloat;
#define VINT(name, ...) vfloat_##name(__VA_ARGS__)

// Lanes of 32 bits.
enum { VECTOR_LANES = sizeof(vfloat) / sizeof(float) };

static XNN_INLINE vfloat vfloat_set1_ps(float value) { return vdupq_n_f32(value); }
static XNN_INLINE vfloat vfloat_loadu_ps(const float* from) { return vld1q_f32(from); }
static XNN_INLINE vfloat vfloat_add_product(vfloat sum, vfloat a, vfloat b) { return vfmaq_f32(sum, a, b); }

// Loads and stores floats, of which the first `count` exist. All exist where `count` is a constant of VECTOR_LANES.
static XNN_INLINE vfloat vfloat_load(const float* from, size_t count) {
  if (count >= VECTOR_LANES) {
    return vld1q_f32(from);
  }
  float some[VECTOR_LANES] = {0};
  memcpy(some, from, count * sizeof(float));
  return vld1q_f32(some);
}

static XNN_INLINE void vfloat_store(float* to, vfloat values, size_t count) {
  if (count >= VECTOR_LANES) {
    vst1q_f32(to, values);
    return;
  }
  float some[VECTOR_LANES];
  vst1q_f32(some, values);
  memcpy(to, some, count * sizeof(float));
}

// Clamps `x`. Maxima and minima are NaN if an operand is.
static XNN_INLINE vfloat vfloat_clamp(vfloat x, vfloat min, vfloat max) { return vminq_f32(vmaxq_f32(x, min), max); }

#endif
