// See `system.h`.

#ifndef XNNPACK_SYS_SYSTEM_POSIX_H
#define XNNPACK_SYS_SYSTEM_POSIX_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef pthread_t system_thread;

// Begins the definition of a function that a thread runs. The function returns 0.
#define SYSTEM_THREAD_MAIN(name, argument) static void* name(void* argument)

// Least stack of a thread in bytes. musl's default is 128 kB.
#define SYSTEM_STACK_BYTES ((size_t) 1 << 20)

static inline bool system_start_thread(system_thread* thread, void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  size_t stack = 0;
  if (pthread_attr_init(&attributes) != 0) {
    return false;
  }
  if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < SYSTEM_STACK_BYTES) {
    pthread_attr_setstacksize(&attributes, SYSTEM_STACK_BYTES);
  }
  const bool has_started = pthread_create(thread, &attributes, main, argument) == 0;
  pthread_attr_destroy(&attributes);
  return has_started;
}

static inline void system_join_thread(system_thread thread) { pthread_join(thread, NULL); }

// Names the calling thread for debuggers and `ps`.
static inline void system_name_thread(const char* name) {
#ifdef __linux__
  pthread_setname_np(pthread_self(), name);
#else
  (void) name;
#endif
}

typedef pthread_mutex_t system_lock;
#define SYSTEM_LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER

static inline void system_acquire(system_lock* lock) { pthread_mutex_lock(lock); }

static inline void system_release(system_lock* lock) { pthread_mutex_unlock(lock); }

// Threads that are started while the calling thread blocks signals block them, too.
typedef sigset_t system_signals;

static inline system_signals system_block_signals(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

static inline void system_restore_signals(const system_signals* before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

// Calls the functions before a fork, and after it in the parent and in the child.
static inline void system_watch_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  pthread_atfork(before, in_parent, in_child);
}

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>

// From `linux/futex.h`, which C libraries other than glibc may not find.
enum { SYSTEM_FUTEX_WAIT_PRIVATE = 0 | 128, SYSTEM_FUTEX_WAKE_PRIVATE = 1 | 128 };

// Sleeps while `*word` is `value`. May return before the word changes.
static inline void system_wait_while(_Atomic uint32_t* word, uint32_t value) {
  syscall(SYS_futex, word, SYSTEM_FUTEX_WAIT_PRIVATE, value, NULL);
}

// Wakes the thread that waits for `*word`. The caller has changed the word before.
static inline void system_wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, SYSTEM_FUTEX_WAKE_PRIVATE, 1); }

#else
// All words share one queue: a thread that wakes because another word changed checks its own word
// and sleeps again.
static pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_changed = PTHREAD_COND_INITIALIZER;

static inline void system_wait_while(_Atomic uint32_t* word, uint32_t value) {
  pthread_mutex_lock(&wait_mutex);
  while (atomic_load(word) == value) {
    pthread_cond_wait(&wait_changed, &wait_mutex);
  }
  pthread_mutex_unlock(&wait_mutex);
}

static inline void system_wake(_Atomic uint32_t* word) {
  (void) word;
  pthread_mutex_lock(&wait_mutex);
  pthread_cond_broadcast(&wait_changed);
  pthread_mutex_unlock(&wait_mutex);
}
#endif

static inline int64_t system_now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t) time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif
