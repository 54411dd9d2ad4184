// See `system.h` and `system_posix.h`. Windows has neither signals nor forks.

#ifndef XNNPACK_SYS_SYSTEM_WINDOWS_H
#define XNNPACK_SYS_SYSTEM_WINDOWS_H

// For `WaitOnAddress`: Windows 8.
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0602
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif

#include <windows.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef HANDLE system_thread;

#define SYSTEM_THREAD_MAIN(name, argument) static DWORD WINAPI name(void* argument)

static inline bool system_start_thread(system_thread* thread, DWORD (WINAPI* main)(void*), void* argument) {
  *thread = CreateThread(NULL, 0, main, argument, 0, NULL);
  return *thread != NULL;
}

static inline void system_join_thread(system_thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

static inline void system_name_thread(const char* name) { (void) name; }

typedef SRWLOCK system_lock;
#define SYSTEM_LOCK_INITIALIZER SRWLOCK_INIT

static inline void system_acquire(system_lock* lock) { AcquireSRWLockExclusive(lock); }

static inline void system_release(system_lock* lock) { ReleaseSRWLockExclusive(lock); }

typedef struct {
  char unused;
} system_signals;

static inline system_signals system_block_signals(void) { return (system_signals) {0}; }

static inline void system_restore_signals(const system_signals* before) { (void) before; }

static inline void system_watch_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  (void) before;
  (void) in_parent;
  (void) in_child;
}

static inline void system_wait_while(_Atomic uint32_t* word, uint32_t value) {
  WaitOnAddress((volatile void*) word, &value, sizeof(value), INFINITE);
}

static inline void system_wake(_Atomic uint32_t* word) { WakeByAddressSingle((void*) word); }

static inline int64_t system_now_ns(void) {
  LARGE_INTEGER ticks, per_second;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&per_second);
  const int64_t seconds = ticks.QuadPart / per_second.QuadPart;
  const int64_t rest = ticks.QuadPart % per_second.QuadPart;
  return seconds * 1000000000 + rest * 1000000000 / per_second.QuadPart;
}

#endif
