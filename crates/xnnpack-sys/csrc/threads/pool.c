// A thread pool whose caller does not wait for workers that have not started to compute.
//
// A job is the computation of the items of one operator. The caller claims free workers and computes,
// too. Each thread first computes the items of its own range, some at a time, and then takes items from the
// ranges of other threads, so that the caller computes the items of workers that the system has not scheduled.
// When all items are taken, the caller takes back its offer to workers that have not entered the job,
// and waits for those that still compute an item.
//
// The process has one pool. Callers that run jobs at the same time split the processors among them,
// instead of competing for them.
//
// After a job, workers spin for some microseconds, because the next operator usually follows at
// once, and then sleep. No thread spins for some time after the system has run something else on
// the processor of a spinning thread.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "pool.h"

#include <pthreadpool.h>
#include <stdbool.h>
#include <stdlib.h>

#include "callers.h"
#include "float_mode.h"
#include "range.h"
#include "spin.h"
#include "system.h"

#define MAX_THREADS 1024
// Maximal number of items of a job.
#ifndef MAX_ITEMS
#define MAX_ITEMS UINT32_MAX
#endif

// Maximal time that a worker spins for the next job, and the minimal time for which reading the
// clock is worth it.
#define MAX_PATIENCE_NS 40000
#define MIN_PATIENCE_NS 2000
// Maximal time that the caller spins for workers that compute the last items.
#define CALLER_PATIENCE_NS 20000

// The part of a job that one thread computes.
struct part {
  pool_task task;
  const void* call;
  // Number of the item that ranges call 0.
  size_t base;
  uint32_t flags;
  // Number of the thread in the job.
  uint32_t number;
  // The thread's range.
  item_range* items;
};

// A thread of a job, and its range of the job's items.
struct thread {
  // Not used for the caller, which is the first thread.
  struct member* member;
  item_range* items;
};

// A range in a line of its own.
struct own_range {
  _Alignas(64) item_range items;
};

struct job {
  // Two bits of a job's address are flags of a slot.
  _Alignas(64) uint32_t count;
  struct thread* threads;
};

// Values of a slot: 0 if the worker is free, CLAIMED while a caller prepares its job, and otherwise
// the address of a job with flags. A caller may take back a job that the worker does not compute.
#define CLAIMED ((uintptr_t) 1)
#define COMPUTES ((uintptr_t) 1)
#define CALLER_SLEEPS ((uintptr_t) 2)
#define FLAGS ((uintptr_t) 3)

// A worker. Spinning workers read the first line, which callers write. The other line changes only when the worker sleeps or wakes up.
struct member {
  _Alignas(64) _Atomic uintptr_t slot;
  // The worker's part of the job, written by the caller that has the worker. It is in this line because fetching a line that another
  // processor has written takes as long as computing small items.
  struct part part;
  // Range of the worker, or of the caller for the first member, in jobs of callers that hold their workers. No other caller writes it
  // while threads look for items in it.
  item_range items;
  // 1 while the worker sleeps.
  _Alignas(64) _Atomic uint32_t sleeps;
  // Number of jobs after which the worker woke the caller.
  _Atomic uint32_t woken;
  system_thread thread;
};

static struct {
  _Alignas(64) _Atomic bool stops;
  struct member members[MAX_THREADS];
  // Threads of the jobs of callers that hold their workers.
  struct thread held[MAX_THREADS];
} pool = {.held = {{.items = &pool.members[0].items}}};

// Number of members in use. The first member has no worker.
static _Atomic uint32_t started_members = 1;
// Number of members above which no worker is started: the system has refused one, or the process is a child. The next pool tries again.
static _Atomic uint32_t most_members = MAX_THREADS;
// Guards `handles` and changes of `started_members`.
static system_lock mutex = SYSTEM_LOCK_INITIALIZER;
static uint32_t handles;

// Computes the items of a range that no other thread takes.
static inline void compute_range(const struct part* part, item_range* range, enum side side) {
  for (struct items items; (items = take(range, side)).count != 0;) {
    part->task(part->call, part->base + items.first, items.count, part->number);
  }
}

// Computes the items that the thread has taken first, and others until all items of the job are taken.
static void compute(const struct job* job, const struct part* part, struct items first) {
  const bool has_mode = (part->flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0;
  const float_mode before = has_mode ? disable_denormals() : 0;
  if (first.count != 0) {
    part->task(part->call, part->base + first.first, first.count, part->number);
  }
  compute_range(part, part->items, BEGIN);
  for (uint32_t i = 1; i < job->count; i++) {
    compute_range(part, job->threads[(part->number + i) % job->count].items, END);
  }
  if (has_mode) {
    restore_floats(before);
  }
}

static void compute_alone(pool_task task, const void* call, size_t count, uint32_t flags) {
  const bool has_mode = (flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0;
  const float_mode before = has_mode ? disable_denormals() : 0;
  if (count != 0) {
    task(call, 0, count, 0);
  }
  if (has_mode) {
    restore_floats(before);
  }
}

static bool has_left(const struct member* member, uintptr_t job) {
  return (atomic_load(&member->slot) & ~FLAGS) != job;
}

// Waits until a worker that computes has left the job.
static void wait_for(struct member* member, uintptr_t job) {
  if (spin(has_left, member, job, CALLER_PATIENCE_NS, atomic_load(&started_members))) {
    return;
  }
  const uint32_t woken = atomic_load(&member->woken);
  uintptr_t slot = job | COMPUTES;
  if (atomic_compare_exchange_strong(&member->slot, &slot, slot | CALLER_SLEEPS)) {
    while (!has_left(member, job)) {
      system_wait_while(&member->woken, woken);
    }
  }
}

// Claims up to `count` - 1 workers, and writes them behind the caller, the first of `threads`. Returns the number of threads.
static uint32_t claim(struct thread* threads, uint32_t count, struct share share) {
  const uint32_t started = atomic_load_explicit(&started_members, memory_order_acquire);
  uint32_t claimed = 1;
  for (uint32_t i = share.first; i < started && claimed < count; i++) {
    struct member* member = &pool.members[i];
    uintptr_t slot = 0;
    if (atomic_load_explicit(&member->slot, memory_order_relaxed) == 0 &&
        atomic_compare_exchange_strong(&member->slot, &slot, CLAIMED)) {
      threads[claimed++].member = member;
    }
  }
  if (claimed < count && share.first > 1) {
    claim_from_now_on();
  }
  return claimed;
}

// Gives each worker its range of `items` items, and offers the job to them. `part` is the caller's.
static void offer_job(const struct job* job, const struct part* part, uint32_t items) {
  // All ranges come before the first offer, as workers look for items in all of them.
  for (uint32_t i = 1; i < job->count; i++) {
    atomic_store_explicit(job->threads[i].items, range_of_thread(items, job->count, i), memory_order_relaxed);
  }
  for (uint32_t i = 1; i < job->count; i++) {
    const struct thread* thread = &job->threads[i];
    thread->member->part = *part;
    thread->member->part.number = i;
    thread->member->part.items = thread->items;
    atomic_store_explicit(&thread->member->slot, (uintptr_t) job, memory_order_release);
  }
  // A worker that falls asleep at this moment may miss the job: other threads compute its items.
  for (uint32_t i = 1; i < job->count; i++) {
    struct member* member = job->threads[i].member;
    if (atomic_load(&member->sleeps) != 0 && atomic_exchange(&member->sleeps, 0) != 0) {
      system_wake(&member->sleeps);
    }
  }
}

// Frees workers that have not entered the job, and waits for the others.
static void close_job(const struct job* job) {
  // Workers that have not started are freed before the caller waits for others.
  for (uint32_t i = 1; i < job->count; i++) {
    _Atomic uintptr_t* offer = &job->threads[i].member->slot;
    uintptr_t slot = atomic_load(offer);
    if (slot == (uintptr_t) job) {
      atomic_compare_exchange_strong(offer, &slot, 0);
    }
  }
  for (uint32_t i = 1; i < job->count; i++) {
    struct member* member = job->threads[i].member;
    if (!has_left(member, (uintptr_t) job)) {
      wait_for(member, (uintptr_t) job);
    }
  }
}

// Computes `items` items with `count` threads, the first of which is the caller. `part` is the caller's.
static void run_job(struct thread* threads, uint32_t count, struct part* part, uint32_t items) {
  const struct job job = {.count = count, .threads = threads};
  part->items = threads[0].items;
  atomic_store_explicit(part->items, range_of_thread(items, count, 0), memory_order_relaxed);
  // Taken before workers' lines are written, since an exchange waits until all writes have reached the cache.
  const struct items first = take(part->items, BEGIN);
  offer_job(&job, part, items);
  compute(&job, part, first);
  close_job(&job);
}

// Computes `items` items with workers that the caller claims, up to `count` threads. `part` is the caller's.
static void run_claiming(uint32_t count, struct share share, struct part* part, uint32_t items) {
  struct own_range ranges[count];
  struct thread threads[count];
  for (uint32_t i = 0; i < count; i++) {
    threads[i].items = &ranges[i].items;
  }
  run_job(threads, claim(threads, count, share), part, items);
}

static void start_workers(uint32_t threads);

// Number of threads of a caller that shares the processors with others.
static uint32_t share_processors(const struct pthreadpool* handle, uint32_t threads, uint32_t callers) {
  const uint32_t share = (handle->processors + callers - 1) / callers;
  threads = share < threads ? share : threads;
  // Several callers need more workers than one.
  if (callers > 1 && threads > 1) {
    const uint64_t needed = (uint64_t) callers * threads;
    start_workers(needed < handle->processors ? (uint32_t) needed : handle->processors);
  }
  return threads;
}

void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags)
{
  uint32_t threads = handle != NULL ? handle->threads : 1;
  threads = count < threads ? (uint32_t) count : threads;
  if (threads <= 1) {
    compute_alone(task, call, count, flags);
    return;
  }
  start_workers(threads);
  const uint32_t started = atomic_load_explicit(&started_members, memory_order_acquire);
  const struct share share = enter(threads < started ? threads : started);
  threads = share.held != 0 ? share.held : share_processors(handle, threads, share.callers);
  if (threads <= 1) {
    compute_alone(task, call, count, flags);
  } else {
    struct part part = {.task = task, .call = call, .flags = flags, .number = 0};
    // A job has as many items as a range can number.
    for (; part.base < count; part.base += MAX_ITEMS) {
      const uint32_t items = count - part.base < MAX_ITEMS ? (uint32_t) (count - part.base) : MAX_ITEMS;
      const uint32_t most = items < threads ? items : threads;
      if (share.held != 0) {
        run_job(pool.held, most, &part, items);
      } else {
        run_claiming(most, share, &part, items);
      }
    }
  }
  leave(share);
}

// Whether a worker shall stop, or is offered a job.
static bool has_news(const struct member* member, uintptr_t unused) {
  (void) unused;
  return (atomic_load(&member->slot) & ~FLAGS) != 0 || atomic_load(&pool.stops);
}

// Computes the job that the worker is offered. Returns false if the worker is offered none.
static bool work(struct member* member) {
  uintptr_t slot = atomic_load(&member->slot);
  if ((slot & ~FLAGS) == 0) {
    return false;
  }
  const struct job* job = (const struct job*) slot;
  __builtin_prefetch(job);
  if (!atomic_compare_exchange_strong(&member->slot, &slot, slot | COMPUTES)) {
    return false;
  }
  // A copy, since other threads may write to this line meanwhile.
  const struct part part = member->part;
  // Where the worker looks for items when its own are taken.
  __builtin_prefetch(job->threads[(part.number + 1) % job->count].items);
  compute(job, &part, take(part.items, BEGIN));
  // The job may end with this store.
  slot = atomic_exchange(&member->slot, 0);
  if ((slot & CALLER_SLEEPS) != 0) {
    atomic_fetch_add(&member->woken, 1);
    system_wake(&member->woken);
  }
  return true;
}

SYSTEM_THREAD_MAIN(worker, argument) {
  struct member* member = argument;
  system_name_thread("xnnpack");
  int64_t patience = MAX_PATIENCE_NS;
  while (!atomic_load(&pool.stops)) {
    if (work(member)) {
      continue;
    }
    if (patience >= MIN_PATIENCE_NS && spin(has_news, member, 0, patience, atomic_load(&started_members))) {
      continue;
    }
    // The worker has spun for its patience.
    const int64_t start = system_now_ns() - patience;
    atomic_store(&member->sleeps, 1);
    while (!has_news(member, 0) && atomic_load(&member->sleeps) != 0) {
      system_wait_while(&member->sleeps, 1);
    }
    atomic_store(&member->sleeps, 0);
    // Spin longer next time if the job came soon enough to wait for it, and shorter otherwise.
    const int64_t idle = system_now_ns() - start;
    patience = idle <= MAX_PATIENCE_NS ? MAX_PATIENCE_NS : patience / 2;
    if (patience < MIN_PATIENCE_NS && idle <= 4 * MAX_PATIENCE_NS) {
      patience = MIN_PATIENCE_NS;
    }
  }
  return 0;
}

static void lock(void) { system_acquire(&mutex); }

static void unlock(void) { system_release(&mutex); }

// A child process does not have the workers and other callers of its parent.
static void forget_workers(void) {
  for (uint32_t i = 0; i < atomic_load(&started_members); i++) {
    atomic_store(&pool.members[i].slot, 0);
    atomic_store(&pool.members[i].sleeps, 0);
  }
  atomic_store(&started_members, 1);
  atomic_store(&most_members, 1);
  forget_callers();
  unlock();
}

// Starts workers until the pool has `threads` threads, including a caller, or the system refuses.
static void start_workers(uint32_t threads) {
  const uint32_t most = atomic_load_explicit(&most_members, memory_order_relaxed);
  threads = threads < most ? threads : most;
  if (atomic_load_explicit(&started_members, memory_order_relaxed) >= threads) {
    return;
  }
  lock();
  // Workers block all signals, so that the program's own threads handle them.
  const system_signals before = system_block_signals();
  uint32_t started = atomic_load_explicit(&started_members, memory_order_relaxed);
  while (started < threads) {
    struct member* member = &pool.members[started];
    pool.held[started] = (struct thread) {member, &member->items};
    if (!system_start_thread(&member->thread, worker, member)) {
      atomic_store(&most_members, started);
      break;
    }
    started++;
    atomic_store_explicit(&started_members, started, memory_order_release);
  }
  system_restore_signals(&before);
  unlock();
}

pthreadpool_t xnnpack_sys_pool_create(size_t threads, size_t processors) {
  static _Atomic bool watches_forks;
  const uint32_t wanted = threads < MAX_THREADS ? (uint32_t) threads : MAX_THREADS;
  const uint32_t most = processors < MAX_THREADS ? (uint32_t) processors : MAX_THREADS;
  struct pthreadpool* handles_of = calloc(BUDGETS, sizeof(struct pthreadpool));
  if (handles_of == NULL || threads == 0) {
    free(handles_of);
    return NULL;
  }
  if (!atomic_exchange(&watches_forks, true)) {
    system_watch_forks(lock, unlock, forget_workers);
  }
  lock();
  handles++;
  atomic_store(&most_members, MAX_THREADS);
  unlock();
  for (uint32_t i = 0; i < BUDGETS; i++) {
    const uint32_t budget = i == 0 ? wanted : UINT32_C(1) << i;
    handles_of[i].threads = budget < wanted ? budget : wanted;
    handles_of[i].processors = most > wanted ? most : wanted;
  }
  return handles_of;
}

void xnnpack_sys_pool_start(const struct pthreadpool* handle) { start_workers(handle->threads); }

pthreadpool_t xnnpack_sys_pool_smaller(pthreadpool_t handle, size_t threads) {
  for (uint32_t i = 1; i < BUDGETS; i++) {
    if (handle[i].threads == threads) {
      return &handle[i];
    }
  }
  return handle;
}

pthreadpool_t pthreadpool_create(size_t threads) { return xnnpack_sys_pool_create(threads, threads); }

size_t pthreadpool_get_threads_count(pthreadpool_t handle) { return handle != NULL ? handle->threads : 1; }

void pthreadpool_destroy(pthreadpool_t handle) {
  if (handle == NULL) {
    return;
  }
  free(handle);
  lock();
  handles--;
  if (handles == 0) {
    const uint32_t started = atomic_load(&started_members);
    atomic_store(&pool.stops, true);
    for (uint32_t i = 1; i < started; i++) {
      struct member* member = &pool.members[i];
      atomic_store(&member->sleeps, 0);
      system_wake(&member->sleeps);
      system_join_thread(member->thread);
    }
    atomic_store(&started_members, 1);
    atomic_store(&pool.stops, false);
  }
  unlock();
}
