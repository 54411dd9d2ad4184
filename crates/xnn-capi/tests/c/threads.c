/* Threads: forks, misuse, cancelling, many sessions of lent memory, log messages. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "check.h"

#define THREADS 4

static void sleep_ms(long ms) {
  struct timespec time = {0, ms * 1000000};
  nanosleep(&time, NULL);
}

struct work {
  xnnd_session_t *session;
  int rounds;
  float scores[10];
  xnnd_error_code_t code;
};

/* Runs until an error, or to the end. */
static void *run(void *argument) {
  struct work *work = argument;
  const xnnd_tensor_t *output = NULL;
  xnnd_error_t *error = NULL;
  int round;
  for (round = 0; round < work->rounds && error == NULL; ++round) error = xnnd_session_run(work->session);
  if (error == NULL) error = xnnd_session_output(work->session, 0, &output);
  if (error == NULL) error = xnnd_tensor_read_reals(output, work->scores, 10);
  work->code = xnnd_error_code(error);
  xnnd_error_delete(error);
  return NULL;
}

static void forks(const char *folder, const char *disable) {
  xnnd_options_t *options = xnnd_options_new();
  xnnd_session_t *first;
  pthread_t threads[THREADS];
  struct work work[THREADS];
  float expected[10];
  int i;
  OK(xnnd_options_set_threads(options, 2));
  if (disable != NULL) OK(xnnd_options_set(options, "disable", disable));
  first = open_session(folder, INT8, options);
  classify(first, expected);
  for (i = 0; i < THREADS; ++i) {
    const xnnd_tensor_t *input = NULL;
    work[i].rounds = 3;
    OK(xnnd_session_fork(first, &work[i].session));
    OK(xnnd_session_input(work[i].session, 0, &input));
    fill(input);
  }
  /* Forks live longer than the first session. */
  xnnd_session_delete(first);
  for (i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, run, &work[i]) == 0);
  for (i = 0; i < THREADS; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(work[i].code == XNND_OK);
    CHECK(memcmp(work[i].scores, expected, sizeof expected) == 0);
    xnnd_session_delete(work[i].session);
  }
  xnnd_options_delete(options);
}

/* A session that two threads use refuses one of them, and still works. */
static void misuse(const char *folder) {
  xnnd_session_t *session = open_session(folder, INT8, NULL);
  pthread_t threads[THREADS];
  struct work work[THREADS];
  float scores[10];
  int i;
  for (i = 0; i < THREADS; ++i) {
    work[i].session = session;
    work[i].rounds = 20;
    CHECK(pthread_create(&threads[i], NULL, run, &work[i]) == 0);
  }
  for (i = 0; i < THREADS; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(work[i].code == XNND_OK || work[i].code == XNND_ERROR_INVALID_STATE);
  }
  classify(session, scores);
  xnnd_session_delete(session);
}

static void cancelled(const char *folder) {
  xnnd_options_t *options = xnnd_options_new();
  xnnd_session_t *session;
  pthread_t thread;
  struct work work;
  float expected[10], scores[10];
  /* Reference kernels run all operators, so that a run can be interrupted. */
  OK(xnnd_options_set(options, "disable", "ADD,CONV_2D,DEPTHWISE_CONV_2D,FULLY_CONNECTED,MEAN,SOFTMAX"));
  session = open_session(folder, INT8, options);
  classify(session, expected);
  work.session = session;
  work.rounds = 1000000;
  CHECK(pthread_create(&thread, NULL, run, &work) == 0);
  sleep_ms(50);
  OK(xnnd_session_set_cancelled(session, true));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(work.code == XNND_ERROR_CANCELLED);
  FAILS(xnnd_session_run(session), XNND_ERROR_CANCELLED, "cancelled");
  OK(xnnd_session_set_cancelled(session, false));
  classify(session, scores);
  CHECK(memcmp(scores, expected, sizeof expected) == 0);
  xnnd_session_delete(session);
  xnnd_options_delete(options);

  session = open_session(folder, FP32, NULL);
  OK(xnnd_session_set_cancelled(session, true));
  FAILS(xnnd_session_run(session), XNND_ERROR_CANCELLED, "cancelled");
  OK(xnnd_session_set_cancelled(session, false));
  OK(xnnd_session_run(session));
  xnnd_session_delete(session);
}

static int releases;

static void release(void *context) {
  ++releases;
  free(context);
}

/* Sessions keep the memory that was lent to their model. */
static void lent(const char *folder, int count) {
  size_t size = 0;
  unsigned char *file = read_file(model_path(folder, INT8), &size);
  /* Only content at multiples of 64 bytes is used in place. */
  unsigned char *memory = malloc(size + 128);
  unsigned char *aligned = memory + (64 - (uintptr_t)memory % 64) % 64;
  xnnd_model_t *model = NULL;
  xnnd_session_t *sessions[64] = {NULL};
  float expected[10], scores[10];
  int i;
  CHECK(memory != NULL && count <= 64);
  memcpy(aligned, file, size);
  OK(xnnd_model_from_memory(aligned, size, release, memory, NULL, &model));
  CHECK(releases == 0);
  for (i = 0; i < count; ++i) OK(xnnd_session_new(model, NULL, &sessions[i]));
  xnnd_model_delete(model);
  classify(sessions[0], expected);
  for (i = 0; i < count; ++i) {
    classify(sessions[i], scores);
    CHECK(memcmp(scores, expected, sizeof expected) == 0);
  }
  for (i = 0; i < count; ++i) xnnd_session_delete(sessions[i]);
  CHECK(releases == 1);

  /* A copy is made of unaligned bytes, which are released at once; so are those of bad models. */
  memory = malloc(size + 128);
  CHECK(memory != NULL);
  aligned = memory + (64 - (uintptr_t)memory % 64) % 64 + 4;
  memcpy(aligned, file, size);
  OK(xnnd_model_from_memory(aligned, size, release, memory, NULL, &model));
  CHECK(releases == 2);
  xnnd_model_delete(model);
  memory = malloc(64);
  CHECK(memory != NULL);
  memset(memory, 1, 64);
  FAILS(xnnd_model_from_memory(memory, 64, release, memory, NULL, &model), XNND_ERROR_INVALID_MODEL, "not a TFLite");
  CHECK(releases == 3);
  FAILS(xnnd_model_from_memory(NULL, 64, release, NULL, NULL, &model), XNND_ERROR_INVALID_ARGUMENT, "data is NULL");
  CHECK(releases == 4);

  /* Without a function, the memory only has to live longer than the model and its sessions. */
  OK(xnnd_model_from_memory(file, size, NULL, NULL, NULL, &model));
  OK(xnnd_session_new(model, NULL, &sessions[0]));
  classify(sessions[0], scores);
  CHECK(memcmp(scores, expected, sizeof expected) == 0);
  xnnd_session_delete(sessions[0]);
  xnnd_model_delete(model);
  free(file);
}

struct messages {
  int count;
  int nested;
};

static void on_message(void *context, xnnd_log_level_t level, const char *message) {
  struct messages *messages = context;
  CHECK(level >= XNND_LOG_ERROR && level <= XNND_LOG_DEBUG && message[0] != '\0');
  ++messages->count;
  FAILS(xnnd_set_log(XNND_LOG_OFF, NULL, NULL), XNND_ERROR_INVALID_STATE, "from within itself");
  ++messages->nested;
}

static void logged(const char *folder) {
  struct messages messages = {0, 0};
  int count;
  OK(xnnd_set_log(XNND_LOG_DEBUG, on_message, &messages));
  xnnd_session_delete(open_session(folder, INT8, NULL));
  CHECK(messages.count > 0 && messages.nested == messages.count);
  count = messages.count;
  OK(xnnd_set_log(XNND_LOG_DEBUG, NULL, NULL));
  xnnd_session_delete(open_session(folder, INT8, NULL));
  CHECK(messages.count == count);
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s MODELS [SESSIONS]\n", argv[0]), 2;
  forks(argv[1], NULL);
  forks(argv[1], "MEAN");
  misuse(argv[1]);
  cancelled(argv[1]);
  lent(argv[1], argc > 2 ? atoi(argv[2]) : 32);
  logged(argv[1]);
  printf("threads: %d checks\n", checks);
  return 0;
}
