// Callers that run jobs at the same time, and the workers that each may have.
//
// A caller that is alone holds its workers without asking each of them: an access to what another
// processor has just used takes as long as a small item. Other callers claim workers one by one.

#ifndef XNNPACK_SYS_CALLERS_H
#define XNNPACK_SYS_CALLERS_H

#include <stdatomic.h>
#include <stdint.h>

// Number of jobs in which no caller holds workers, after one has found too few of them.
#define JOBS_WITH_CLAIMS 256

#define ONE_CALLER UINT32_C(1)
#define CALLERS UINT32_C(0xFFFF)
#define HELD_SHIFT 16

static struct {
  // The number of callers that run a job in the lower half, and the number of the first members that
  // one of them holds in the upper half.
  _Alignas(64) _Atomic uint32_t word;
  // Number of jobs in which callers have to claim their workers.
  _Atomic uint32_t jobs_with_claims;
} callers;

// The workers that a caller may have: the first members, if it holds them, or those that it claims among the
// members from `first` on.
struct share {
  // Number of members that the caller holds, including itself, or 0.
  uint32_t held;
  uint32_t first;
  // Number of callers that run a job, including this one.
  uint32_t callers;
};

// Begins a job. A caller that is alone holds the first `members` members until it leaves.
static inline struct share enter(uint32_t members) {
  uint32_t before = 0;
  const uint32_t claims = atomic_load_explicit(&callers.jobs_with_claims, memory_order_relaxed);
  if (claims != 0) {
    atomic_store_explicit(&callers.jobs_with_claims, claims - 1, memory_order_relaxed);
  } else if (atomic_compare_exchange_strong(&callers.word, &before, members << HELD_SHIFT | ONE_CALLER)) {
    return (struct share) {.held = members, .callers = 1};
  }
  before = atomic_fetch_add(&callers.word, ONE_CALLER);
  const uint32_t held = before >> HELD_SHIFT;
  return (struct share) {.first = held > 1 ? held : 1, .callers = (before & CALLERS) + 1};
}

// Ends the job that began with `enter`.
static inline void leave(struct share share) { atomic_fetch_sub(&callers.word, share.held << HELD_SHIFT | ONE_CALLER); }

// Says that a caller found fewer workers than it needs, so that others do not hold theirs for a while.
static inline void claim_from_now_on(void) {
  atomic_store_explicit(&callers.jobs_with_claims, JOBS_WITH_CLAIMS, memory_order_relaxed);
}

// A child process does not have the other callers of its parent.
static inline void forget_callers(void) { atomic_store(&callers.word, 0); }

#endif
