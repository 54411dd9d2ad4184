// Vectors of bytes, of which the last may have fewer, see `vector_x86.h`.

#ifndef XNNPACK_SYS_BLOCKS_X86_H
#define XNNPACK_SYS_BLOCKS_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/copy.h"
#include "ukernels/vector_x86.h"
#include "xnnpack/common.h"

// Loads a vector of bytes, of which the first `count` exist.
static XNN_INLINE vint load_block(const void* from, size_t count) {
  if XNN_LIKELY(count >= sizeof(vint)) {
    return vint_load(from);
  }
#ifdef __AVX512BW__
  return _mm512_maskz_loadu_epi8(((__mmask64) 1 << count) - 1, from);
#else
  uint8_t some[sizeof(vint)] = {0};
  xnnpack_sys_copy(some, from, count);
  return vint_load(some);
#endif
}

static XNN_INLINE void store_block(void* to, vint bytes, size_t count) {
  if XNN_LIKELY(count >= sizeof(vint)) {
    vint_store(to, bytes);
    return;
  }
#ifdef __AVX512BW__
  _mm512_mask_storeu_epi8(to, ((__mmask64) 1 << count) - 1, bytes);
#else
  uint8_t some[sizeof(vint)];
  vint_store(some, bytes);
  xnnpack_sys_copy(to, some, count);
#endif
}

enum {
  BLOCK_SIGN = 0x80,
  // Vectors of 32 bits that the bytes of one vector become.
  QUARTERS = 4,
};

// Widens the bytes of two vectors to words, one of each in a lane. Packing results twice brings them back into the order of the bytes.
static XNN_INLINE void interleave_words(vint a, vint b, vint words[QUARTERS]) {
  const vint front = VINT(unpacklo_epi8, a, b);
  const vint back = VINT(unpackhi_epi8, a, b);
  words[0] = VINT(unpacklo_epi8, front, vint_zero());
  words[1] = VINT(unpackhi_epi8, front, vint_zero());
  words[2] = VINT(unpacklo_epi8, back, vint_zero());
  words[3] = VINT(unpackhi_epi8, back, vint_zero());
}

// Makes uint8 of int8: adds 128. Makes int8 of uint8, too.
static XNN_INLINE vint flip_sign(bool is_signed, vint bytes) {
  return is_signed ? VINT_BITS(xor, bytes, VINT(set1_epi8, (char) BLOCK_SIGN)) : bytes;
}

#endif
