/* Checks for the tests of the C API. A failed check ends the program. */
#ifndef CHECK_H_
#define CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xnn.h"

static int checks;

#define CHECK(condition)                                                      \
  do {                                                                        \
    ++checks;                                                                 \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* The call succeeds. */
#define OK(call) expect_ok((call), __FILE__, __LINE__, #call)

/* The call fails with a code and a message that contains a text. */
#define FAILS(call, code, text) expect_failure((call), (code), (text), __FILE__, __LINE__, #call)

static inline void expect_ok(xnnd_error_t *error, const char *file, int line, const char *call) {
  ++checks;
  if (error == NULL) return;
  fprintf(stderr, "%s:%d: %s failed: %s\n", file, line, call, xnnd_error_message(error));
  exit(1);
}

static inline void expect_failure(xnnd_error_t *error, xnnd_error_code_t code, const char *text,
                                  const char *file, int line, const char *call) {
  ++checks;
  if (xnnd_error_code(error) != code || strstr(xnnd_error_message(error), text) == NULL) {
    fprintf(stderr, "%s:%d: %s: expected code %d with \"%s\", found %d: %s\n", file, line, call, (int)code,
            text, (int)xnnd_error_code(error), xnnd_error_message(error));
    exit(1);
  }
  xnnd_error_delete(error);
}

/* A path below the folder of models, until the next call. */
static inline const char *model_path(const char *folder, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

#define FP32 "digits_mobilenet_v2_fp32.tflite"
#define INT8 "digits_mobilenet_v2_int8.tflite"

/* The content of a file, to be freed. */
static inline unsigned char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  unsigned char *bytes = NULL;
  CHECK(file != NULL);
  CHECK(fseek(file, 0, SEEK_END) == 0);
  *size = (size_t)ftell(file);
  rewind(file);
  bytes = (unsigned char *)malloc(*size);
  CHECK(bytes != NULL);
  CHECK(fread(bytes, 1, *size, file) == *size);
  fclose(file);
  return bytes;
}

/* Fills an input with values that are the same in all tests. */
static inline void fill(const xnnd_tensor_t *input) {
  void *data = NULL;
  size_t size = 0, i;
  OK(xnnd_tensor_data(input, &data, &size));
  if (xnnd_tensor_type(input) == XNND_TYPE_F32) {
    for (i = 0; i < size / sizeof(float); ++i) ((float *)data)[i] = (float)(i % 17) / 8.0f - 1.0f;
  } else {
    for (i = 0; i < size; ++i) ((unsigned char *)data)[i] = (unsigned char)(i * 7);
  }
}

static inline xnnd_session_t *open_session(const char *folder, const char *name,
                                           const xnnd_options_t *options) {
  xnnd_model_t *model = NULL;
  xnnd_session_t *session = NULL;
  OK(xnnd_model_open(model_path(folder, name), options, &model));
  OK(xnnd_session_new(model, options, &session));
  xnnd_model_delete(model);
  return session;
}

/* Fills the input, runs, and copies the ten scores. */
static inline void classify(const xnnd_session_t *session, float scores[10]) {
  const xnnd_tensor_t *input = NULL, *output = NULL;
  OK(xnnd_session_input(session, 0, &input));
  OK(xnnd_session_output(session, 0, &output));
  fill(input);
  OK(xnnd_session_run(session));
  OK(xnnd_tensor_read_reals(output, scores, 10));
}

#endif
