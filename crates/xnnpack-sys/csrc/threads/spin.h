// Spinning until something happens, which is faster than sleeping if it happens soon and the processor
// has nothing else to do.

#ifndef XNNPACK_SYS_SPIN_H
#define XNNPACK_SYS_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "system.h"

// Time between two readings of the clock in a spinning loop that shows that the system has run
// something else on this processor.
#define PREEMPTED_NS 100000
// Time after such a reading in which no thread spins, multiplied by the number of threads: one of many
// threads that loses its processor says less about the others.
#define BUSY_NS 40000000
// Iterations of a spinning loop between two readings of the clock.
#define TURNS 16

struct member;

// Time until which no thread spins.
static _Alignas(64) _Atomic int64_t busy_until;

static inline bool may_spin(int64_t now) { return now >= atomic_load_explicit(&busy_until, memory_order_relaxed); }

// Spins for some iterations, or until `is_over` returns true. Returns whether it did.
static inline bool spin_some(bool (*is_over)(const struct member*, uintptr_t), const struct member* member, uintptr_t job) {
  for (int turn = 0; turn < TURNS; turn++) {
    if (is_over(member, job)) {
      return true;
    }
    relax();
  }
  return false;
}

// Spins until `is_over` returns true, for at most `patience` nanoseconds. Returns the last result
// of `is_over`. Sets `busy_until` if the thread, one of `threads`, lost its processor meanwhile.
static inline bool spin(
    bool (*is_over)(const struct member*, uintptr_t), const struct member* member, uintptr_t job, int64_t patience,
    uint32_t threads)
{
  // The clock is not read for events that happen at once.
  if (spin_some(is_over, member, job)) {
    return true;
  }
  int64_t last = system_now_ns();
  const int64_t end = last + patience;
  while (may_spin(last) && last < end) {
    if (spin_some(is_over, member, job)) {
      return true;
    }
    const int64_t now = system_now_ns();
    if (now - last > PREEMPTED_NS) {
      atomic_store_explicit(&busy_until, now + BUSY_NS / threads, memory_order_relaxed);
    }
    last = now;
  }
  return is_over(member, job);
}

#endif
