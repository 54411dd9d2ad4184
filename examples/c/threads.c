/* Runs a model in several threads at once, each with a session of its own and with memory of its own for the input and
 * output.
 *
 *   cc threads.c $(pkg-config --cflags --libs xnn) -lpthread -o threads
 *   ./threads ../../models/digits_mobilenet_v2_fp32.tflite 4 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xnn.h>

#define RUNS 100
#define MOST_THREADS 64

struct worker {
  pthread_t thread;
  xnnd_session_t *session;
  void *input;
  void *output;
  xnnd_error_t *error;
};

/* Binds memory of the worker, so that nothing is copied if the model is fully delegated. */
static xnnd_error_t *bind(struct worker *worker) {
  const xnnd_tensor_t *input = NULL, *output = NULL;
  size_t input_size = 0, output_size = 0;
  xnnd_error_t *error = xnnd_session_input(worker->session, 0, &input);
  if (!error) error = xnnd_session_output(worker->session, 0, &output);
  if (!error) error = xnnd_tensor_byte_size(input, &input_size);
  if (!error) error = xnnd_tensor_byte_size(output, &output_size);
  if (error) return error;
  worker->input = calloc(1, input_size + XNND_PADDING);
  worker->output = calloc(1, output_size + 1);
  if (!worker->input || !worker->output) exit(1);
  error = xnnd_tensor_bind(input, worker->input, input_size + XNND_PADDING);
  return error ? error : xnnd_tensor_bind(output, worker->output, output_size);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  int run;
  for (run = 0; run < RUNS && !worker->error; ++run) worker->error = xnnd_session_run(worker->session);
  return NULL;
}

int main(int argc, char **argv) {
  struct worker workers[MOST_THREADS];
  xnnd_model_t *model = NULL;
  xnnd_session_t *first = NULL;
  xnnd_error_t *error;
  int count = argc > 2 ? atoi(argv[2]) : 2, i, failed = 0;
  if (argc < 2 || count < 1 || count > MOST_THREADS) return fprintf(stderr, "usage: %s MODEL [THREADS]\n", argv[0]), 2;
  memset(workers, 0, sizeof workers);

  /* The forks share the packed weights of the first session. */
  error = xnnd_model_open(argv[1], NULL, &model);
  if (!error) error = xnnd_session_new(model, NULL, &first);
  for (i = 0; i < count && !error; ++i) error = xnnd_session_fork(first, &workers[i].session);
  for (i = 0; i < count && !error; ++i) error = bind(&workers[i]);
  xnnd_session_delete(first);
  xnnd_model_delete(model);

  if (!error) {
    for (i = 0; i < count; ++i) {
      if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) exit(1);
    }
    /* A program that is told to stop calls xnnd_session_set_cancelled(workers[i].session, true) here, for each worker. */
    for (i = 0; i < count; ++i) pthread_join(workers[i].thread, NULL);
    printf("%d threads, %d runs each\n", count, RUNS);
  }
  for (i = 0; i < count; ++i) {
    xnnd_error_t *of_worker = error ? error : workers[i].error;
    if (of_worker) failed = 1, fprintf(stderr, "thread %d: %s\n", i, xnnd_error_message(of_worker));
    xnnd_error_delete(workers[i].error);
    xnnd_session_delete(workers[i].session);
    free(workers[i].input);
    free(workers[i].output);
  }
  xnnd_error_delete(error);
  return failed;
}
