// A pool that computes everything alone and simulates how long threads of their own processors would take. Stands in for `pool.c`
// where XNNPACK_SYS_SIMULATE_THREADS is set for the build. The variable XNN_SIMULATED_THREADS has the number of threads.
//
// The time of each item is measured. Threads take items as in `pool.c`: first those of their own range, then the last ones of other
// ranges. Caches, the memory's bandwidth and the processor's clock are those of one thread.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "pool.h"

#include <inttypes.h>
#include <pthreadpool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "alone.h"
#include "float_mode.h"
#include "range.h"
#include "system.h"

#define MAX_THREADS 64
// Time after which a worker computes, for each worker that the caller offers a job before, and until the worker sees its own offer.
#define OFFER_NS 50
#define ENTER_NS 150
// Time until the caller sees that the last worker has left.
#define LEAVE_NS 150

static struct {
  // Times in nanoseconds.
  int64_t simulated;
  int64_t inside;
  // Time inside of calls with one item, and with fewer items than threads.
  int64_t alone;
  int64_t few;
} totals;

// Also where a trial of threads, which measures one, has chosen one.
uint32_t xnnpack_sys_pool_threads(void) {
  static uint32_t threads;
  if (threads == 0) {
    const char* text = getenv("XNN_SIMULATED_THREADS");
    const long number = text != NULL ? strtol(text, NULL, 10) : 1;
    threads = number < 1 ? 1 : number > MAX_THREADS ? MAX_THREADS : (uint32_t) number;
  }
  return threads;
}

// Takes items for a thread; none if all are taken.
static struct items take_any(item_range* ranges, uint32_t threads, uint32_t thread) {
  struct items items = take(&ranges[thread], BEGIN);
  for (uint32_t i = 1; i < threads && items.count == 0; i++) {
    items = take(&ranges[(thread + i) % threads], END);
  }
  return items;
}

// Time until all items are computed that take `times` alone.
static int64_t simulate(const int64_t* times, uint32_t count, uint32_t threads) {
  item_range ranges[MAX_THREADS];
  int64_t now[MAX_THREADS];
  threads = count < threads ? count : threads;
  for (uint32_t thread = 0; thread < threads; thread++) {
    atomic_store_explicit(&ranges[thread], range_of_thread(count, threads, thread), memory_order_relaxed);
    now[thread] = thread == 0 ? OFFER_NS * (int64_t) (threads - 1) : OFFER_NS * (int64_t) thread + ENTER_NS;
  }
  for (;;) {
    uint32_t next = 0;
    for (uint32_t thread = 1; thread < threads; thread++) {
      next = now[thread] < now[next] ? thread : next;
    }
    const struct items items = take_any(ranges, threads, next);
    if (items.count == 0) {
      break;
    }
    for (uint32_t item = items.first; item < items.first + items.count; item++) {
      now[next] += times[item];
    }
  }
  int64_t end = now[0];
  for (uint32_t thread = 1; thread < threads; thread++) {
    end = now[thread] + LEAVE_NS > end ? now[thread] + LEAVE_NS : end;
  }
  return end;
}

// Writes the totals of the process as JSON.
static void report(void) {
  fprintf(
      stderr,
      "{\"inside_ns\": %" PRId64 ", \"simulated_ns\": %" PRId64 ", \"alone_ns\": %" PRId64 ", \"few_ns\": %" PRId64 "}\n",
      totals.inside, totals.simulated, totals.alone, totals.few);
}

void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags)
{
  static bool reports;
  if (!reports) {
    reports = true;
    atexit(report);
  }
  (void) handle;
  const bool has_mode = (flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0;
  const float_mode before = has_mode ? disable_denormals() : 0;
  const uint32_t threads = xnnpack_sys_pool_threads();
  int64_t* times = threads > 1 && count > 1 && count <= UINT32_MAX ? calloc(count, sizeof(int64_t)) : NULL;
  const int64_t start = system_now_ns();
  int64_t last = start;
  if (times == NULL && count != 0) {
    task(call, 0, count, 0);
  }
  for (size_t item = 0; times != NULL && item < count; item++) {
    task(call, item, 1, 0);
    const int64_t now = system_now_ns();
    times[item] = now - last;
    last = now;
  }
  if (has_mode) {
    restore_floats(before);
  }
  const int64_t inside = system_now_ns() - start;
  totals.inside += inside;
  totals.simulated += times != NULL ? simulate(times, (uint32_t) count, threads) : inside;
  totals.alone += count <= 1 ? inside : 0;
  totals.few += count < threads ? inside : 0;
  free(times);
}
