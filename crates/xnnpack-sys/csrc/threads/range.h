// Ranges of a job's items, from which threads take items.

#ifndef XNNPACK_SYS_RANGE_H
#define XNNPACK_SYS_RANGE_H

#include <stdatomic.h>
#include <stdint.h>

// A thread takes this fraction of a range's items at once, so that it does so rarely: small items take as long as the access to a
// range. The rest is there for threads that are faster.
#define FRACTION 4

// Items from `first` on, `count` of them.
struct items {
  uint32_t first;
  uint32_t count;
};

// Items that no thread has taken: the first one in the upper 32 bits, the end in the lower 32 bits.
typedef _Atomic uint64_t item_range;

// Where a thread takes items of a range: of its own at the begin, of others at the end, which is the farthest from the items that the
// other thread computes.
enum side { BEGIN, END };

static inline uint64_t range_of(uint64_t first, uint64_t end) { return first << 32 | end; }

// First item of a thread's range where `items` items are divided among `threads` threads, and the end of that of the thread before.
static inline uint64_t first_of(uint32_t items, uint32_t threads, uint32_t thread) {
  const uint32_t longer = items % threads;
  return (uint64_t) thread * (items / threads) + (thread < longer ? thread : longer);
}

// Range of a thread where `items` items are divided among `threads` threads.
static inline uint64_t range_of_thread(uint32_t items, uint32_t threads, uint32_t thread) {
  return range_of(first_of(items, threads, thread), first_of(items, threads, thread + 1));
}

// Takes items of a range; none if all are taken.
static inline struct items take(item_range* from, enum side side) {
  uint64_t range = atomic_load_explicit(from, memory_order_relaxed);
  for (;;) {
    const uint32_t first = (uint32_t) (range >> 32);
    const uint32_t end = (uint32_t) range;
    if (first >= end) {
      return (struct items) {0, 0};
    }
    const uint32_t left = end - first;
    const uint32_t count = left < 2 * FRACTION ? 1 : left / FRACTION;
    const uint64_t rest = side == BEGIN ? range_of(first + count, end) : range_of(first, end - count);
    if (atomic_compare_exchange_weak_explicit(from, &range, rest, memory_order_relaxed, memory_order_relaxed)) {
      return (struct items) {side == BEGIN ? first : end - count, count};
    }
  }
}

#endif
