// Loads and stores of fewer bytes than a vector has. The C library would be called for a number of bytes that is no constant. Here all
// have constant sizes, and may overlap.

#ifndef XNNPACK_SYS_FEW_BYTES_H
#define XNNPACK_SYS_FEW_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "xnnpack/common.h"

// Loads `count` bytes, from one to four, without reading beyond them. Others are zero.
static XNN_INLINE uint32_t load_up_to_4(const void* from, size_t count) {
  if (count == 4) {
    uint32_t all;
    memcpy(&all, from, sizeof(all));
    return all;
  }
  const uint8_t* bytes = from;
  uint16_t two;
  if (count == 3) {
    // A pixel in the first layer of most models. The shift is a constant.
    memcpy(&two, bytes, sizeof(two));
    return two | (uint32_t) bytes[2] << 16;
  }
  if (count == 1) {
    return *bytes;
  }
  memcpy(&two, bytes, sizeof(two));
  return two;
}

// Loads `count` bytes, from one to eight.
static XNN_INLINE uint64_t load_up_to_8(const void* from, size_t count) {
  if (count < 4) {
    return load_up_to_4(from, count);
  }
  uint32_t front;
  uint32_t back;
  memcpy(&front, from, sizeof(front));
  memcpy(&back, (const uint8_t*) from + count - 4, sizeof(back));
  return front | (uint64_t) back << 8 * (count - 4);
}

// Stores `count` bytes, from one to eight.
static XNN_INLINE void store_up_to_8(void* to, uint64_t bytes, size_t count) {
  if (count >= 4) {
    const uint32_t front = (uint32_t) bytes;
    const uint32_t back = (uint32_t) (bytes >> 8 * (count - 4));
    memcpy(to, &front, sizeof(front));
    memcpy((uint8_t*) to + count - 4, &back, sizeof(back));
    return;
  }
  if (count >= 2) {
    const uint16_t front = (uint16_t) bytes;
    const uint16_t back = (uint16_t) (bytes >> 8 * (count - 2));
    memcpy(to, &front, sizeof(front));
    memcpy((uint8_t*) to + count - 2, &back, sizeof(back));
    return;
  }
  *(uint8_t*) to = (uint8_t) bytes;
}

#endif
