// A thread pool whose caller does not wait for workers that have not started to compute.
//
// A job is the computation of the items of one operator. The caller computes, too. Each thread
// first computes the items of its own range and then takes items from the ranges of other threads,
// so that the caller computes the items of workers that the system has not scheduled. When all
// items are taken, the caller closes the job, so that no further worker can enter it, and waits for
// the workers that still compute an item.
//
// The process has one pool. If another caller uses the pool, a caller computes its job alone:
// models that run at the same time share the workers operator by operator instead of competing for
// processors.
//
// After a job, workers spin for some microseconds, because the next operator usually follows at
// once, and then sleep. No thread spins for some time after the system has run something else on
// the processor of a spinning thread.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "pool.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "wait.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

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
// Time between two readings of the clock in a spinning loop that shows that the system has run
// something else on this processor.
#define PREEMPTED_NS 100000
// Time after such a reading in which no thread spins.
#define BUSY_NS 20000000
// Iterations of a spinning loop between two readings of the clock.
#define TURNS 16

// State of the current job in one word: the number of workers in the job, which a worker increments
// to enter an open job, the number of threads that may compute, two flags, and the generation,
// which is the number of the job.
#define WORKER UINT64_C(1)
#define WORKERS UINT64_C(0xFFF)
#define THREADS_SHIFT 12
#define OPEN (UINT64_C(1) << 24)
#define CALLER_SLEEPS (UINT64_C(1) << 25)
#define GENERATION_SHIFT 32

struct member {
  // Range of this thread's items that no thread has taken: the first item in the upper 32 bits, the
  // end in the lower 32 bits.
  _Alignas(64) _Atomic uint64_t items;
  // 1 while the worker sleeps.
  _Atomic uint32_t sleeps;
  pthread_t thread;
};

static struct {
  _Alignas(64) _Atomic uint64_t state;
  // Written by the caller that uses the pool, before it opens the job.
  pool_task task;
  const void* call;
  uint32_t flags;
  // Number of the item that the members' ranges call 0.
  size_t base;
  // Generation of the last job whose caller slept, written when the last worker has left the job.
  _Alignas(64) _Atomic uint32_t left;
  // Whether a caller uses the pool.
  _Alignas(64) _Atomic bool is_taken;
  _Atomic bool stops;
  // Time until which no thread spins.
  _Atomic int64_t busy_until;
  struct member members[MAX_THREADS];
} pool;

// Guards `handles` and `started`.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t handles;
// Number of members in use. The first member belongs to the caller, the others belong to workers.
static uint32_t started = 1;

// Floating-point mode of a thread: XNNPACK computes without denormals.
#if defined(__SSE__)
typedef unsigned int float_mode;

static float_mode disable_denormals(void) {
  const float_mode before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  return before;
}

static void restore_floats(float_mode before) { _mm_setcsr(before); }
#elif defined(__aarch64__)
typedef uint64_t float_mode;

static float_mode disable_denormals(void) {
  float_mode before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" ::"r"(before | UINT64_C(1) << 24));
  return before;
}

static void restore_floats(float_mode before) { __asm__ volatile("msr fpcr, %0" ::"r"(before)); }
#else
typedef int float_mode;

static float_mode disable_denormals(void) { return 0; }

static void restore_floats(float_mode before) { (void) before; }
#endif

// Takes the first item of the thread's own range.
static bool take_first(_Atomic uint64_t* items, uint32_t* item) {
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
static bool take_last(_Atomic uint64_t* items, uint32_t* item) {
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

// Computes items of the current job until all items are taken.
static void compute(uint32_t thread, uint32_t threads) {
  const pool_task task = pool.task;
  const void* call = pool.call;
  const size_t base = pool.base;
  const bool has_mode = (pool.flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0;
  const float_mode before = has_mode ? disable_denormals() : 0;
  uint32_t item;
  while (take_first(&pool.members[thread].items, &item)) {
    task(call, base + item, thread);
  }
  for (uint32_t i = 1; i < threads; i++) {
    const uint32_t other = (thread + i) % threads;
    while (take_last(&pool.members[other].items, &item)) {
      task(call, base + item, thread);
    }
  }
  if (has_mode) {
    restore_floats(before);
  }
}

static void compute_alone(pool_task task, const void* call, size_t count, uint32_t flags) {
  const bool has_mode = (flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0;
  const float_mode before = has_mode ? disable_denormals() : 0;
  for (size_t i = 0; i < count; i++) {
    task(call, i, 0);
  }
  if (has_mode) {
    restore_floats(before);
  }
}

static bool may_spin(int64_t now) { return now >= atomic_load_explicit(&pool.busy_until, memory_order_relaxed); }

// Spins until `is_over` returns true, for at most `patience` nanoseconds. Returns the last result
// of `is_over`. Sets `busy_until` if the thread lost its processor meanwhile.
static bool spin(bool (*is_over)(uint64_t), uint64_t argument, int64_t patience) {
  int64_t last = now_ns();
  const int64_t end = last + patience;
  while (may_spin(last) && last < end) {
    for (int turn = 0; turn < TURNS; turn++) {
      if (is_over(argument)) {
        return true;
      }
      relax();
    }
    const int64_t now = now_ns();
    if (now - last > PREEMPTED_NS) {
      atomic_store_explicit(&pool.busy_until, now + BUSY_NS, memory_order_relaxed);
    }
    last = now;
  }
  return is_over(argument);
}

static bool have_workers_left(uint64_t unused) {
  (void) unused;
  return (atomic_load(&pool.state) & WORKERS) == 0;
}

// Waits until all workers have left the closed job.
static void wait_for_workers(void) {
  if (spin(have_workers_left, 0, CALLER_PATIENCE_NS)) {
    return;
  }
  const uint64_t state = atomic_fetch_or(&pool.state, CALLER_SLEEPS);
  const uint32_t generation = (uint32_t) (state >> GENERATION_SHIFT);
  while ((state & WORKERS) != 0) {
    const uint32_t left = atomic_load(&pool.left);
    if (left == generation) {
      return;
    }
    wait_while(&pool.left, left);
  }
}

// Gives each thread a range of items, opens the job, and wakes sleeping workers.
static void open_job(uint32_t threads, uint32_t count) {
  const uint32_t each = count / threads;
  const uint32_t longer = count % threads;
  uint64_t first = 0;
  for (uint32_t thread = 0; thread < threads; thread++) {
    const uint64_t end = first + each + (thread < longer ? 1 : 0);
    atomic_store_explicit(&pool.members[thread].items, first << 32 | end, memory_order_relaxed);
    first = end;
  }
  const uint64_t generation = (atomic_load(&pool.state) >> GENERATION_SHIFT) + 1;
  atomic_store(&pool.state, generation << GENERATION_SHIFT | OPEN | (uint64_t) threads << THREADS_SHIFT);
  for (uint32_t thread = 1; thread < threads; thread++) {
    _Atomic uint32_t* sleeps = &pool.members[thread].sleeps;
    if (atomic_load(sleeps) != 0 && atomic_exchange(sleeps, 0) != 0) {
      wake(sleeps);
    }
  }
}

// Computes the items from `base` on with all threads of the pool, which this caller has taken.
static void run_job(uint32_t threads, size_t base, uint32_t items) {
  pool.base = base;
  open_job(threads, items);
  compute(0, threads);
  const uint64_t state = atomic_fetch_and(&pool.state, ~OPEN);
  if ((state & WORKERS) != 0) {
    wait_for_workers();
  }
}

void xnnpack_sys_pool_run(
    const struct pthreadpool* handle, pool_task task, const void* call, size_t count, uint32_t flags)
{
  const uint32_t most = handle != NULL ? handle->threads : 1;
  const uint32_t threads = count < most ? (uint32_t) count : most;
  if (threads <= 1 || atomic_exchange_explicit(&pool.is_taken, true, memory_order_acquire)) {
    compute_alone(task, call, count, flags);
    return;
  }
  pool.task = task;
  pool.call = call;
  pool.flags = flags;
  // A job has as many items as a range can number.
  for (size_t base = 0; base < count; base += MAX_ITEMS) {
    const size_t rest = count - base;
    run_job(threads, base, rest < MAX_ITEMS ? (uint32_t) rest : MAX_ITEMS);
  }
  atomic_store_explicit(&pool.is_taken, false, memory_order_release);
}

// Enters the current job if it is open for this worker, and computes items. Returns false if the
// worker could not enter a job.
static bool work(uint32_t thread, uint32_t* last) {
  uint64_t state = atomic_load(&pool.state);
  uint32_t threads;
  do {
    threads = (uint32_t) (state >> THREADS_SHIFT & WORKERS);
    if ((state & OPEN) == 0 || thread >= threads || (uint32_t) (state >> GENERATION_SHIFT) == *last) {
      return false;
    }
  } while (!atomic_compare_exchange_weak(&pool.state, &state, state + WORKER));
  *last = (uint32_t) (state >> GENERATION_SHIFT);
  compute(thread, threads);
  state = atomic_fetch_sub(&pool.state, WORKER);
  if ((state & WORKERS) == WORKER && (state & CALLER_SLEEPS) != 0) {
    atomic_store(&pool.left, *last);
    wake(&pool.left);
  }
  return true;
}

// Whether a worker shall stop, or may enter a job that it has not entered yet. The upper 32 bits of
// the argument are the worker's number, and the lower 32 bits are the generation of the last job
// that it entered.
static bool has_news(uint64_t worker) {
  const uint64_t state = atomic_load(&pool.state);
  return atomic_load(&pool.stops) ||
         ((state & OPEN) != 0 && worker >> 32 < (state >> THREADS_SHIFT & WORKERS) &&
          (uint32_t) (state >> GENERATION_SHIFT) != (uint32_t) worker);
}

static void* worker(void* argument) {
  const uint32_t thread = (uint32_t) (uintptr_t) argument;
#ifdef __linux__
  pthread_setname_np(pthread_self(), "xnnpack");
#endif
  _Atomic uint32_t* sleeps = &pool.members[thread].sleeps;
  int64_t patience = MAX_PATIENCE_NS;
  uint32_t last = 0;
  while (!atomic_load(&pool.stops)) {
    if (work(thread, &last)) {
      continue;
    }
    const uint64_t argument = (uint64_t) thread << 32 | last;
    const int64_t start = now_ns();
    if (patience >= MIN_PATIENCE_NS && spin(has_news, argument, patience)) {
      continue;
    }
    atomic_store(sleeps, 1);
    while (!has_news(argument) && atomic_load(sleeps) != 0) {
      wait_while(sleeps, 1);
    }
    atomic_store(sleeps, 0);
    // Spin longer next time if the job came soon enough to wait for it, and shorter otherwise.
    const int64_t idle = now_ns() - start;
    patience = idle <= MAX_PATIENCE_NS ? MAX_PATIENCE_NS : patience / 2;
    if (patience < MIN_PATIENCE_NS && idle <= 4 * MAX_PATIENCE_NS) {
      patience = MIN_PATIENCE_NS;
    }
  }
  return NULL;
}

static void lock(void) { pthread_mutex_lock(&mutex); }

static void unlock(void) { pthread_mutex_unlock(&mutex); }

// A child process does not have the workers of its parent.
static void forget_workers(void) {
  started = 1;
  atomic_store(&pool.state, 0);
  atomic_store(&pool.is_taken, false);
  unlock();
}

static void watch_forks(void) { pthread_atfork(lock, unlock, forget_workers); }

pthreadpool_t pthreadpool_create(size_t threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct pthreadpool* handle = malloc(sizeof(struct pthreadpool));
  if (handle == NULL || threads == 0) {
    free(handle);
    return NULL;
  }
  const uint32_t wanted = threads < MAX_THREADS ? (uint32_t) threads : MAX_THREADS;
  pthread_once(&once, watch_forks);
  lock();
  handles++;
  // Workers block all signals, so that the program's own threads handle them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started < wanted) {
    struct member* member = &pool.members[started];
    if (pthread_create(&member->thread, NULL, worker, (void*) (uintptr_t) started) != 0) {
      break;
    }
    started++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  handle->threads = wanted < started ? wanted : started;
  unlock();
  return handle;
}

size_t pthreadpool_get_threads_count(pthreadpool_t handle) { return handle != NULL ? handle->threads : 1; }

void pthreadpool_destroy(pthreadpool_t handle) {
  if (handle == NULL) {
    return;
  }
  free(handle);
  lock();
  handles--;
  if (handles == 0) {
    atomic_store(&pool.stops, true);
    for (uint32_t thread = 1; thread < started; thread++) {
      struct member* member = &pool.members[thread];
      atomic_store(&member->sleeps, 0);
      wake(&member->sleeps);
      pthread_join(member->thread, NULL);
    }
    started = 1;
    atomic_store(&pool.stops, false);
  }
  unlock();
}
