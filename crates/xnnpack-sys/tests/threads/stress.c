// Runs loops of all sizes from several callers at once, each with its own pools. Each item must be
// computed once, by a thread whose number is below the pool's number of threads, and two threads
// must not have the same number at once. Callers at the same time must split the processors.

#include <dirent.h>
#include <pthread.h>
#include <pthreadpool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../csrc/threads/pool.h"

#define CALLERS 3
#define MOST_ITEMS 700

struct loop {
  _Atomic int computed[MOST_ITEMS];
  // Not atomic, so that two threads with the same number at once are a data race.
  size_t items_of_thread[16];
  size_t threads;
};

static void check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "failed: %s\n", what);
    abort();
  }
}

static void task(void* context, size_t thread, size_t item) {
  struct loop* loop = context;
  check(thread < loop->threads, "thread number");
  loop->items_of_thread[thread]++;
  atomic_fetch_add_explicit(&loop->computed[item], 1, memory_order_relaxed);
}

static void run_loop(pthreadpool_t pool, struct loop* loop, size_t items) {
  for (size_t i = 0; i < items; i++) {
    loop->computed[i] = 0;
  }
  for (size_t i = 0; i < 16; i++) {
    loop->items_of_thread[i] = 0;
  }
  loop->threads = pthreadpool_get_threads_count(pool);
  pthreadpool_parallelize_1d_with_thread(pool, task, loop, items, PTHREADPOOL_FLAG_DISABLE_DENORMALS);
  size_t sum = 0;
  for (size_t i = 0; i < items; i++) {
    check(loop->computed[i] == 1, "each item once");
  }
  for (size_t i = 0; i < 16; i++) {
    sum += loop->items_of_thread[i];
  }
  check(sum == items, "as many items as there are");
}

static void* caller(void* argument) {
  const size_t runs = (size_t) argument;
  struct loop* loop = calloc(1, sizeof(struct loop));
  unsigned seed = (unsigned) runs;
  for (size_t i = 0; i < 4; i++) {
    const size_t threads = 1 + rand_r(&seed) % 6;
    pthreadpool_t pool = xnnpack_sys_pool_create(threads, threads + rand_r(&seed) % 4);
    for (size_t run = 0; run < runs; run++) {
      pthreadpool_t part = rand_r(&seed) % 4 == 0 ? xnnpack_sys_pool_smaller(pool, 2) : pool;
      run_loop(part, loop, rand_r(&seed) % 5 == 0 ? rand_r(&seed) % MOST_ITEMS : rand_r(&seed) % 9);
      if (rand_r(&seed) % 64 == 0) {
        // Long enough that idle workers sleep.
        usleep(200);
      }
    }
    pthreadpool_destroy(pool);
  }
  free(loop);
  return NULL;
}

static void tile(void* context, size_t i, size_t j, size_t rows, size_t columns) {
  _Atomic int* cells = context;
  for (size_t row = i; row < i + rows; row++) {
    for (size_t column = j; column < j + columns; column++) {
      atomic_fetch_add(&cells[row * 13 + column], 1);
    }
  }
}

static void check_tiles(pthreadpool_t pool) {
  _Atomic int cells[17 * 13] = {0};
  pthreadpool_parallelize_2d_tile_2d(pool, tile, cells, 17, 13, 4, 5, 0);
  for (size_t i = 0; i < 17 * 13; i++) {
    check(cells[i] == 1, "each cell once");
  }
}

static void check_parts(void) {
  pthreadpool_t pool = pthreadpool_create(6);
  const size_t threads[] = {2, 4, 6};
  for (size_t i = 0; i < 3; i++) {
    pthreadpool_t part = xnnpack_sys_pool_smaller(pool, threads[i]);
    check(pthreadpool_get_threads_count(part) == threads[i], "threads of a part");
  }
  pthreadpool_destroy(pool);
}

// Barriers of threads that compute at the same time.
static _Atomic int first_arrived, second_arrived, released;

static void wait_for_release(void* context, size_t item) {
  atomic_fetch_add(&first_arrived, 1);
  while (!released) {
    usleep(100);
  }
}

static void wait_for_each_other(void* context, size_t item) {
  atomic_fetch_add(&second_arrived, 1);
  while (second_arrived < 4) {
    usleep(100);
  }
}

static void* run_first(void* pool) {
  pthreadpool_parallelize_1d(pool, wait_for_release, NULL, 4, 0);
  return NULL;
}

// While one caller's four threads compute, another caller has four threads, too, as there are eight
// processors.
static void check_split(void) {
  pthreadpool_t pools[2] = {xnnpack_sys_pool_create(4, 8), xnnpack_sys_pool_create(4, 8)};
  pthread_t first;
  pthread_create(&first, NULL, run_first, pools[0]);
  while (first_arrived < 4) {
    usleep(100);
  }
  pthreadpool_parallelize_1d(pools[1], wait_for_each_other, NULL, 4, 0);
  released = 1;
  pthread_join(first, NULL);
  pthreadpool_destroy(pools[0]);
  pthreadpool_destroy(pools[1]);
}

static void count_item(void* context, size_t item) { atomic_fetch_add((_Atomic int*) context, 1); }

// A caller that finds all workers held by another does not wait for it.
static void check_held(void) {
  pthreadpool_t pool = xnnpack_sys_pool_create(4, 4);
  first_arrived = released = 0;
  pthread_t first;
  pthread_create(&first, NULL, run_first, pool);
  while (first_arrived < 4) {
    usleep(100);
  }
  _Atomic int computed = 0;
  for (size_t run = 0; run < 3; run++) {
    pthreadpool_parallelize_1d(pool, count_item, &computed, 10, 0);
  }
  check(computed == 30, "items beside a caller that holds all workers");
  released = 1;
  pthread_join(first, NULL);
  pthreadpool_destroy(pool);
}

// Workers sleep soon after a loop: an idle process takes no processor time.
static void check_idle(void) {
  const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
  nanosleep(&pause, NULL);
  const clock_t before = clock();
  nanosleep(&pause, NULL);
  check(clock() - before < CLOCKS_PER_SEC / 100, "idle workers sleep");
}

#ifdef __linux__
static size_t count_threads(void) {
  size_t threads = 0;
  DIR* tasks = opendir("/proc/self/task");
  check(tasks != NULL, "a list of threads");
  for (const struct dirent* task; (task = readdir(tasks)) != NULL;) {
    threads += task->d_name[0] != '.';
  }
  closedir(tasks);
  return threads;
}

// The first job for several threads starts workers, neither the pool itself nor a job for one thread.
static void check_start(void) {
  const size_t others = count_threads();
  pthreadpool_t pool = pthreadpool_create(4);
  _Atomic int computed = 0;
  pthreadpool_parallelize_1d(pool, count_item, &computed, 1, 0);
  check(count_threads() == others, "no worker before there is work for it");
  pthreadpool_parallelize_1d(pool, count_item, &computed, 10, 0);
  // ThreadSanitizer starts a thread of its own.
  check(count_threads() >= others + 3, "workers of a job");
  check(computed == 11, "items of the first jobs");
  pthreadpool_t larger = pthreadpool_create(6);
  xnnpack_sys_pool_start(larger);
  check(count_threads() >= others + 5, "workers before the first job");
  pthreadpool_destroy(pool);
  pthreadpool_destroy(larger);
}
#endif

// Without memory for stacks the system starts no thread, and the caller computes all items.
static void check_refused(void) {
  pthreadpool_t pool = pthreadpool_create(4);
  struct rlimit before;
  check(getrlimit(RLIMIT_AS, &before) == 0, "a limit of memory");
  const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_AS, &none);
  check_tiles(pool);
  check_tiles(pool);
  setrlimit(RLIMIT_AS, &before);
  pthreadpool_destroy(pool);
}

int main(int count, char** arguments) {
  // Ends the test if threads wait for each other for ever.
  alarm(300);
  // Before other threads leave stacks that can be used again.
  check_refused();
#ifdef __linux__
  check_start();
#endif
  const size_t runs = count > 1 ? (size_t) atol(arguments[1]) : 2000;
  pthread_t callers[CALLERS];
  for (size_t i = 0; i < CALLERS; i++) {
    pthread_create(&callers[i], NULL, caller, (void*) (runs + i));
  }
  for (size_t i = 0; i < CALLERS; i++) {
    pthread_join(callers[i], NULL);
  }
  pthreadpool_t pool = pthreadpool_create(4);
  check(pthreadpool_get_threads_count(pool) == 4, "threads");
  check_tiles(pool);
  check_tiles(NULL);
  check_parts();
  check_split();
  check_held();
  check_idle();
#ifndef __SANITIZE_THREAD__
  // A child process has no workers: the caller computes all items.
  const pid_t child = fork();
  if (child == 0) {
    check_tiles(pool);
    pthreadpool_destroy(pool);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  check(status == 0, "a child computes");
#endif
  pthreadpool_destroy(pool);
  puts("ok");
  return 0;
}
