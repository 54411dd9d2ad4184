// Ranges of a job's items, from which threads take items.

#ifndef XNNPACK_SYS_RANGE_H
#define XNNPACK_SYS_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct member;

// Range of items that no thread has taken: the first item in the upper 32 bits, the end in the lower
// 32 bits.
struct range {
  _Alignas(64) _Atomic uint64_t items;
  // The worker whose range this is. The first range belongs to the caller.
  struct member* member;
};

// Takes the first item of the thread's own range.
static inline bool take_first(_Atomic uint64_t* items, uint32_t* item) {
  uint64_t range = atomic_load_explicit(items, memory_order_relaxed);
  do {
    if ((uint32_t) (range >> 32) >= (uint32_t) range) {
      return false;
    }
    *item = (uint32_t) (range >> 32);
  } while (!atomic_compare_exchange_weak_explicit(
      items, &range, range + (UINT64_C(1) << 32), memory_order_relaxed, memory_order_relaxed));
  return true;
}

// Takes the last item of another thread's range, which is the farthest from the item that the other
// thread computes.
static inline bool take_last(_Atomic uint64_t* items, uint32_t* item) {
  uint64_t range = atomic_load_explicit(items, memory_order_relaxed);
  do {
    if ((uint32_t) (range >> 32) >= (uint32_t) range) {
      return false;
    }
    *item = (uint32_t) range - 1;
  } while (
      !atomic_compare_exchange_weak_explicit(items, &range, range - 1, memory_order_relaxed, memory_order_relaxed));
  return true;
}

#endif
