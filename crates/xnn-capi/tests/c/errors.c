/* Error paths: NULL for every pointer, wrong names and sizes, hostile files. */
#include "check.h"

#define BAD XNND_ERROR_INVALID_ARGUMENT

static void nulls(const char *folder) {
  xnnd_model_t *model = (xnnd_model_t *)1;
  xnnd_session_t *session = (xnnd_session_t *)1;
  const xnnd_tensor_t *tensor = (const xnnd_tensor_t *)1;
  xnnd_bytes_t *bytes = (xnnd_bytes_t *)1;
  const size_t *dims = (const size_t *)1;
  size_t rank = 1, size = 1;
  void *data = &rank;
  float scale = 0, real = 0;
  int64_t zero_point = 1;
  xnnd_string_t string = {NULL, 1};

  CHECK(xnnd_error_code(NULL) == XNND_OK && xnnd_error_message(NULL)[0] == '\0');
  CHECK(strcmp(xnnd_version(), XNND_VERSION) == 0);
  xnnd_error_delete(NULL);
  xnnd_bytes_delete(NULL);
  xnnd_options_delete(NULL);
  xnnd_model_delete(NULL);
  xnnd_session_delete(NULL);
  CHECK(xnnd_bytes_data(NULL) == NULL && xnnd_bytes_text(NULL) == NULL && xnnd_bytes_size(NULL) == 0);

  FAILS(xnnd_options_set_threads(NULL, 1), BAD, "options is NULL");
  FAILS(xnnd_options_set_profile(NULL, true), BAD, "options is NULL");
  FAILS(xnnd_options_set_cache_dir(NULL, "x"), BAD, "options is NULL");
  FAILS(xnnd_options_set_signature(NULL, "x"), BAD, "options is NULL");
  FAILS(xnnd_options_set_limit(NULL, XNND_LIMIT_WORK, 1), BAD, "options is NULL");
  FAILS(xnnd_options_set(NULL, "disable", "MEAN"), BAD, "options is NULL");

  FAILS(xnnd_model_open(NULL, NULL, &model), BAD, "path is NULL");
  CHECK(model == NULL);
  FAILS(xnnd_model_open(model_path(folder, FP32), NULL, NULL), BAD, "out is NULL");
  FAILS(xnnd_model_from_copy(NULL, 8, NULL, &model), BAD, "data is NULL");
  FAILS(xnnd_model_from_memory(NULL, 8, NULL, NULL, NULL, &model), BAD, "data is NULL");
  FAILS(xnnd_model_from_copy("x", 1, NULL, NULL), BAD, "out is NULL");
  FAILS(xnnd_model_convert(NULL, NULL, 0, NULL, &bytes), BAD, "model is NULL");
  CHECK(bytes == NULL);
  FAILS(xnnd_model_convert_to_file(NULL, NULL, 0, "x", NULL), BAD, "model is NULL");
  FAILS(xnnd_model_explain_json(NULL, NULL, &bytes), BAD, "model is NULL");
  CHECK(xnnd_model_signature_count(NULL) == 0 && xnnd_model_signature(NULL, 0) == NULL);
  CHECK(xnnd_model_format(NULL) == XNND_FORMAT_TFLITE);

  FAILS(xnnd_session_new(NULL, NULL, &session), BAD, "model is NULL");
  CHECK(session == NULL);
  FAILS(xnnd_session_fork(NULL, &session), BAD, "session is NULL");
  FAILS(xnnd_session_run(NULL), BAD, "session is NULL");
  FAILS(xnnd_session_reset(NULL), BAD, "session is NULL");
  FAILS(xnnd_session_resize(NULL, NULL, 0), BAD, "session is NULL");
  FAILS(xnnd_session_set_cancelled(NULL, true), BAD, "session is NULL");
  FAILS(xnnd_session_coverage_json(NULL, &bytes), BAD, "session is NULL");
  FAILS(xnnd_session_profile_json(NULL, &bytes), BAD, "session is NULL");
  CHECK(xnnd_session_input_count(NULL) == 0 && xnnd_session_output_count(NULL) == 0);
  CHECK(xnnd_session_threads(NULL) == 0);
  FAILS(xnnd_session_input(NULL, 0, &tensor), BAD, "session is NULL");
  CHECK(tensor == NULL);
  FAILS(xnnd_session_output(NULL, 0, &tensor), BAD, "session is NULL");
  FAILS(xnnd_session_input_named(NULL, "x", &tensor), BAD, "session is NULL");
  FAILS(xnnd_session_output_named(NULL, "x", &tensor), BAD, "session is NULL");

  CHECK(xnnd_tensor_name(NULL) == NULL && xnnd_tensor_type(NULL) == XNND_TYPE_OTHER);
  CHECK(!xnnd_tensor_quantization(NULL, &scale, &zero_point) && scale == 1 && zero_point == 0);
  CHECK(!xnnd_tensor_quantization(NULL, NULL, NULL));
  FAILS(xnnd_tensor_dims(NULL, &dims, &rank), BAD, "tensor is NULL");
  CHECK(dims == NULL && rank == 0);
  FAILS(xnnd_tensor_byte_size(NULL, &size), BAD, "tensor is NULL");
  CHECK(size == 0);
  FAILS(xnnd_tensor_data(NULL, &data, NULL), BAD, "tensor is NULL");
  CHECK(data == NULL);
  FAILS(xnnd_tensor_write(NULL, "x", 1), BAD, "tensor is NULL");
  FAILS(xnnd_tensor_read(NULL, &rank, 1), BAD, "tensor is NULL");
  FAILS(xnnd_tensor_read_reals(NULL, &real, 1), BAD, "tensor is NULL");
  FAILS(xnnd_tensor_bind(NULL, &rank, 1), BAD, "tensor is NULL");
  FAILS(xnnd_tensor_resize(NULL, &rank, 1), BAD, "tensor is NULL");
  FAILS(xnnd_tensor_write_strings(NULL, &string, 0), BAD, "tensor is NULL");
  FAILS(xnnd_tensor_read_strings(NULL, &string, 1), BAD, "tensor is NULL");
  FAILS(xnnd_set_log(99, NULL, NULL), BAD, "level is 99");
}

static void options(void) {
  xnnd_options_t *options = xnnd_options_new();
  CHECK(options != NULL);
  FAILS(xnnd_options_set_threads(options, 0), BAD, "expected 1 to 1024");
  FAILS(xnnd_options_set_threads(options, (size_t)-1), BAD, "expected 1 to 1024");
  OK(xnnd_options_set_threads(options, 2));
  FAILS(xnnd_options_set_limit(options, 99, 1), BAD, "limit is 99");
  FAILS(xnnd_options_set(options, NULL, "true"), BAD, "name is NULL");
  FAILS(xnnd_options_set(options, "keep_small", NULL), BAD, "value is NULL");
  FAILS(xnnd_options_set(options, "threads", "2"), BAD, "the options are disable, ");
  FAILS(xnnd_options_set(options, "keep_small", "maybe"), BAD, "expected true or false");
  FAILS(xnnd_options_set(options, "dynamic_range", "fast"), BAD, "auto, reference or rows");
  FAILS(xnnd_options_set(options, "disable", "SOFMAX"), BAD, "did you mean SOFTMAX?");
  FAILS(xnnd_options_set(options, "u8_as_s8", "\xff"), BAD, "not valid UTF-8");
  OK(xnnd_options_set(options, "disable", "SOFTMAX, MEAN"));
  OK(xnnd_options_set(options, "disable_pass", "transposes"));
  OK(xnnd_options_set(options, "dynamic_range", "rows"));
  OK(xnnd_options_set(options, "u8_as_s8", "approx"));
  OK(xnnd_options_set(options, "max_partitions", "3"));
  OK(xnnd_options_set(options, "min_partition_macs", "1000"));
  OK(xnnd_options_set(options, "no_optimize", "true"));
  OK(xnnd_options_set_cache_dir(options, "cache"));
  OK(xnnd_options_set_cache_dir(options, NULL));
  OK(xnnd_options_set_signature(options, NULL));
  xnnd_options_delete(options);
}

static void wrong_arguments(const char *folder) {
  xnnd_session_t *session = open_session(folder, FP32, NULL);
  xnnd_options_t *options = xnnd_options_new();
  xnnd_model_t *model = NULL;
  xnnd_session_t *other = NULL;
  xnnd_bytes_t *bytes = NULL;
  const xnnd_tensor_t *input = NULL, *output = NULL, *none = NULL;
  void *data = NULL;
  float scores[10];
  size_t size = 0;
  const size_t wrong[] = {1, 48, 48}, zero[] = {1, 48, 48, 4};
  xnnd_shape_t shape = {7, zero, 4};

  OK(xnnd_session_input(session, 0, &input));
  OK(xnnd_session_output(session, 0, &output));
  FAILS(xnnd_session_input(session, 1, &none), BAD, "no input 1; the model has 1 inputs");
  FAILS(xnnd_session_output(session, 9, &none), BAD, "no output 9");
  FAILS(xnnd_session_input_named(session, "pixels", &none), BAD, xnnd_tensor_name(input));
  FAILS(xnnd_session_output_named(session, "", &none), BAD, xnnd_tensor_name(output));
  FAILS(xnnd_session_input_named(session, NULL, &none), BAD, "name is NULL");
  FAILS(xnnd_session_input_named(session, "\xc0", &none), BAD, "name is not valid UTF-8");
  FAILS(xnnd_session_input(session, 0, NULL), BAD, "out is NULL");

  /* Before the first run. */
  FAILS(xnnd_tensor_data(output, &data, &size), XNND_ERROR_INVALID_STATE, "call xnnd_session_run");
  FAILS(xnnd_tensor_read_reals(output, scores, 10), XNND_ERROR_INVALID_STATE, "has not been computed");
  FAILS(xnnd_session_profile_json(session, &bytes), XNND_ERROR_INVALID_STATE, "xnnd_session_run first");
  OK(xnnd_session_run(session));
  FAILS(xnnd_session_profile_json(session, &bytes), XNND_ERROR_INVALID_STATE, "xnnd_options_set_profile");

  FAILS(xnnd_tensor_data(input, NULL, NULL), BAD, "data is NULL");
  FAILS(xnnd_tensor_write(input, scores, sizeof scores), BAD, "expected 27648 bytes, found 40");
  FAILS(xnnd_tensor_write(input, NULL, 27648), BAD, "data is NULL");
  FAILS(xnnd_tensor_write(input, scores, (size_t)-1), BAD, "exceed the memory");
  FAILS(xnnd_tensor_write(output, scores, sizeof scores), BAD, "an output cannot be written");
  FAILS(xnnd_tensor_read(output, scores, 4), BAD, "expected 40 bytes, found 4");
  FAILS(xnnd_tensor_read(output, NULL, 40), BAD, "data is NULL");
  FAILS(xnnd_tensor_read_reals(output, scores, 9), BAD, "expected 10 elements, found 9");
  FAILS(xnnd_tensor_read_reals(output, NULL, 10), BAD, "values is NULL");
  FAILS(xnnd_tensor_resize(output, wrong, 3), BAD, "an output cannot be resized");
  FAILS(xnnd_tensor_resize(input, NULL, 4), BAD, "dims is NULL");
  FAILS(xnnd_tensor_resize(input, wrong, (size_t)-1), BAD, "rank is ");
  FAILS(xnnd_session_resize(session, &shape, 1), BAD, "no input 7");
  FAILS(xnnd_session_resize(session, NULL, 1), BAD, "shapes is NULL");
  CHECK(xnnd_error_code(NULL) == XNND_OK);
  {
    /* Shapes that the model does not accept leave it as it was. */
    xnnd_error_t *error = xnnd_tensor_resize(input, zero, 4);
    CHECK(error != NULL && xnnd_error_message(error)[0] != '\0');
    xnnd_error_delete(error);
    OK(xnnd_tensor_byte_size(input, &size));
    CHECK(size == 27648);
    OK(xnnd_session_run(session));
  }
  FAILS(xnnd_tensor_write_strings(input, NULL, 0), BAD, "type");
  FAILS(xnnd_tensor_read_strings(output, NULL, 0), BAD, "type");

  OK(xnnd_model_open(model_path(folder, FP32), NULL, &model));
  CHECK(xnnd_model_format(model) == XNND_FORMAT_TFLITE);
  CHECK(xnnd_model_signature_count(model) == 1);
  CHECK(strcmp(xnnd_model_signature(model, 0), "serving_default") == 0);
  CHECK(xnnd_model_signature(model, 1) == NULL);
  OK(xnnd_options_set_signature(options, "training"));
  FAILS(xnnd_session_new(model, options, &other), BAD, "no signature \"training\"; the signatures are: serving_default");
  OK(xnnd_options_set_signature(options, "serving_default"));
  OK(xnnd_session_new(model, options, &other));
  OK(xnnd_session_input_named(other, "image", &input));
  xnnd_session_delete(other);
  OK(xnnd_options_set_signature(options, NULL));
  OK(xnnd_options_set_limit(options, XNND_LIMIT_TENSOR_BYTES, 1000));
  FAILS(xnnd_session_new(model, options, &other), XNND_ERROR_LIMIT, "above the limit of 1000");
  CHECK(other == NULL);
  FAILS(xnnd_model_convert(model, NULL, 64, NULL, &bytes), BAD, "XNND_CONVERT_");
  FAILS(xnnd_model_convert(model, NULL, 0, NULL, NULL), BAD, "out is NULL");
  FAILS(xnnd_model_convert_to_file(model, NULL, 0, NULL, NULL), BAD, "path is NULL");
  FAILS(xnnd_model_convert_to_file(model, NULL, 0, model_path(folder, FP32), NULL), BAD, "overwrite its input");
  FAILS(xnnd_model_convert_to_file(model, NULL, 0, "no/such/folder/x.xnn", NULL), XNND_ERROR_IO, "cannot be written");
  FAILS(xnnd_model_explain_json(model, NULL, NULL), BAD, "out is NULL");
  xnnd_options_delete(options);
  options = xnnd_options_new();
  OK(xnnd_options_set(options, "disable", "SOFTMAX"));
  FAILS(xnnd_model_convert(model, options, XNND_CONVERT_REQUIRE_FULL, NULL, &bytes), XNND_ERROR_UNSUPPORTED, "SOFTMAX");
  CHECK(bytes == NULL);
  xnnd_model_delete(model);
  xnnd_options_delete(options);
  xnnd_session_delete(session);
}

/* Damaged files give errors, or models that run. */
static void hostile(const char *folder, unsigned rounds) {
  size_t size = 0;
  unsigned round, failures = 0;
  uint32_t random = 1;
  xnnd_model_t *model = NULL;
  unsigned char *original = read_file(model_path(folder, INT8), &size);
  unsigned char *damaged = malloc(size);
  CHECK(damaged != NULL);
  FAILS(xnnd_model_open("no such file", NULL, &model), XNND_ERROR_IO, "no such file");
  FAILS(xnnd_model_open(folder, NULL, &model), XNND_ERROR_IO, folder);
  FAILS(xnnd_model_from_copy("", 0, NULL, &model), XNND_ERROR_INVALID_MODEL, "too short");
  FAILS(xnnd_model_from_copy("not a model, but longer", 23, NULL, &model), XNND_ERROR_INVALID_MODEL,
        "not a TFLite or Circle model");
  FAILS(xnnd_model_from_copy("....XH00", 8, NULL, &model), XNND_ERROR_INVALID_MODEL, "");
  for (round = 0; round < rounds; ++round) {
    size_t length = size, i;
    xnnd_error_t *error;
    memcpy(damaged, original, size);
    for (i = 0; i < 1 + round % 40; ++i) {
      random = random * 1664525u + 1013904223u;
      /* The tables are at both ends of the file. */
      size_t span = round % 2 ? 4096 : size;
      size_t at = size - 1 - (random >> 8) % span;
      damaged[at] = (unsigned char)(random >> 3);
    }
    if (round % 5 == 0) length = (random >> 4) % size;
    error = xnnd_model_from_copy(damaged, length, NULL, &model);
    if (error == NULL) {
      xnnd_session_t *session = NULL;
      error = xnnd_session_new(model, NULL, &session);
      if (error == NULL) error = xnnd_session_run(session);
      xnnd_session_delete(session);
    }
    if (error != NULL) {
      ++failures;
      CHECK(xnnd_error_code(error) != XNND_ERROR_INTERNAL && xnnd_error_message(error)[0] != '\0');
    }
    xnnd_error_delete(error);
    xnnd_model_delete(model);
    model = NULL;
  }
  CHECK(failures > 0);
  free(damaged);
  free(original);
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
  if (argc < 2) return fprintf(stderr, "usage: %s MODELS [ROUNDS]\n", argv[0]), 2;
  nulls(argv[1]);
  options();
  wrong_arguments(argv[1]);
  hostile(argv[1], rounds);
  printf("errors: %d checks\n", checks);
  return 0;
}
