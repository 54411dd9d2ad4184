// Functions that wait until a word in memory changes, and functions for spinning.

#ifndef XNNPACK_SYS_WAIT_H
#define XNNPACK_SYS_WAIT_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

// Sleeps while `*word` is `value`. May return before the word changes.
static inline void wait_while(_Atomic uint32_t* word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

// Wakes the thread that waits for `*word`. The caller has changed the word before.
static inline void wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1); }

#else
#include <pthread.h>

// All words share one queue: a thread that wakes because another word changed checks its own word
// and sleeps again.
static pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_changed = PTHREAD_COND_INITIALIZER;

static inline void wait_while(_Atomic uint32_t* word, uint32_t value) {
  pthread_mutex_lock(&wait_mutex);
  while (atomic_load(word) == value) {
    pthread_cond_wait(&wait_changed, &wait_mutex);
  }
  pthread_mutex_unlock(&wait_mutex);
}

static inline void wake(_Atomic uint32_t* word) {
  (void) word;
  pthread_mutex_lock(&wait_mutex);
  pthread_cond_broadcast(&wait_changed);
  pthread_mutex_unlock(&wait_mutex);
}
#endif

// Signals to the processor that this thread spins.
static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

static inline int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t) time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif
