/* Running: tensors, bound memory, resizing, conversion, reports. */
#include "check.h"

static void expect_same(const float *a, const float *b, size_t count) {
  CHECK(memcmp(a, b, count * sizeof *a) == 0);
}

static void expect_text(xnnd_bytes_t *bytes, const char *text) {
  CHECK(strlen(xnnd_bytes_text(bytes)) == xnnd_bytes_size(bytes));
  if (strstr(xnnd_bytes_text(bytes), text) == NULL) {
    fprintf(stderr, "expected %s in %s\n", text, xnnd_bytes_text(bytes));
    exit(1);
  }
  xnnd_bytes_delete(bytes);
}

static void tensors(const char *folder) {
  xnnd_session_t *session = open_session(folder, INT8, NULL);
  const xnnd_tensor_t *input = NULL, *named = NULL, *output = NULL;
  const size_t *dims = NULL;
  size_t rank = 0, size = 0, i;
  void *data = NULL, *again = NULL;
  float scale = 0, scores[10], sum = 0;
  int64_t zero_point = 0;
  int8_t raw[10];

  CHECK(xnnd_session_input_count(session) == 1 && xnnd_session_output_count(session) == 1);
  CHECK(xnnd_session_threads(session) == 1);
  OK(xnnd_session_input(session, 0, &input));
  OK(xnnd_session_input_named(session, xnnd_tensor_name(input), &named));
  CHECK(named == input);
  OK(xnnd_session_output(session, 0, &output));
  OK(xnnd_session_output_named(session, xnnd_tensor_name(output), &named));
  CHECK(named == output);
  CHECK(xnnd_tensor_type(input) == XNND_TYPE_I8 && xnnd_tensor_type(output) == XNND_TYPE_I8);
  CHECK(xnnd_tensor_quantization(input, &scale, &zero_point) && scale > 0.0078f && scale < 0.0079f && zero_point == -1);
  OK(xnnd_tensor_dims(input, &dims, &rank));
  CHECK(rank == 4 && dims[0] == 1 && dims[1] == 48 && dims[2] == 48 && dims[3] == 3);
  OK(xnnd_tensor_byte_size(output, &size));
  CHECK(size == 10);
  OK(xnnd_tensor_data(input, &data, &size));
  CHECK(size == 48 * 48 * 3 && (uintptr_t)data % 64 == 0);

  classify(session, scores);
  OK(xnnd_tensor_data(input, &again, NULL));
  CHECK(again == data);
  OK(xnnd_tensor_read(output, raw, sizeof raw));
  CHECK(xnnd_tensor_quantization(output, &scale, &zero_point));
  for (i = 0; i < 10; ++i) {
    CHECK(scores[i] == (float)(raw[i] - (int)zero_point) * scale);
    sum += scores[i];
  }
  CHECK(sum > 0.9f && sum < 1.1f);
  OK(xnnd_tensor_data(output, &data, &size));
  CHECK(size == 10 && memcmp(data, raw, 10) == 0);
  OK(xnnd_session_reset(session));
  xnnd_session_delete(session);
}

/* The caller's memory gives the same results as the session's, with copies and without. */
static void bound(const char *folder, const char *disable) {
  xnnd_options_t *options = xnnd_options_new();
  xnnd_session_t *session;
  const xnnd_tensor_t *input = NULL, *output = NULL;
  size_t size = 0;
  void *data = NULL;
  float expected[10], read[10], result[10] = {0};
  unsigned char *memory;
  if (disable != NULL) OK(xnnd_options_set(options, "disable", disable));
  session = open_session(folder, FP32, options);
  classify(session, expected);
  OK(xnnd_session_input(session, 0, &input));
  OK(xnnd_session_output(session, 0, &output));
  OK(xnnd_tensor_data(input, &data, &size));
  memory = malloc(size + XNND_PADDING + 1);
  CHECK(memory != NULL);
  memcpy(memory, data, size);
  memset(memory + size, 0xff, XNND_PADDING + 1);
  memset(data, 0, size);

  FAILS(xnnd_tensor_bind(input, memory, size), XNND_ERROR_INVALID_ARGUMENT, "XNND_PADDING");
  FAILS(xnnd_tensor_bind(input, memory + 1, size + XNND_PADDING), XNND_ERROR_INVALID_ARGUMENT, "not aligned");
  FAILS(xnnd_tensor_bind(output, result, 39), XNND_ERROR_INVALID_ARGUMENT, "expected memory for 40 bytes");
  OK(xnnd_tensor_bind(input, memory, size + XNND_PADDING));
  FAILS(xnnd_tensor_bind(output, memory + 64, 40), XNND_ERROR_INVALID_ARGUMENT, "overlaps that of input 0");
  OK(xnnd_tensor_bind(output, result, sizeof result));
  FAILS(xnnd_tensor_read(output, read, sizeof read), XNND_ERROR_INVALID_STATE, "has not been computed");
  OK(xnnd_session_run(session));
  expect_same(result, expected, 10);
  OK(xnnd_tensor_read(output, read, sizeof read));
  expect_same(read, expected, 10);
  OK(xnnd_tensor_data(output, &data, NULL));
  CHECK(data == result);
  /* Bound again, and no longer bound. */
  memset(result, 0, sizeof result);
  OK(xnnd_tensor_bind(input, memory, size + XNND_PADDING));
  OK(xnnd_session_run(session));
  expect_same(result, expected, 10);
  OK(xnnd_tensor_bind(output, NULL, 0));
  OK(xnnd_tensor_bind(input, NULL, 0));
  fill(input);
  memset(result, 0, sizeof result);
  OK(xnnd_session_run(session));
  OK(xnnd_tensor_read(output, read, sizeof read));
  expect_same(read, expected, 10);
  CHECK(result[0] == 0);
  free(memory);
  xnnd_session_delete(session);
  xnnd_options_delete(options);
}

static void resized(const char *folder) {
  xnnd_session_t *session = open_session(folder, FP32, NULL);
  const xnnd_tensor_t *input = NULL, *output = NULL;
  const size_t *dims = NULL;
  const size_t three[] = {3, 48, 48, 3}, one[] = {1, 48, 48, 3};
  xnnd_shape_t shape = {0, one, 4};
  size_t rank = 0, size = 0, i;
  float expected[10], scores[30];
  void *data = NULL;
  classify(session, expected);
  OK(xnnd_session_input(session, 0, &input));
  OK(xnnd_session_output(session, 0, &output));
  OK(xnnd_tensor_resize(input, three, 4));
  OK(xnnd_tensor_dims(output, &dims, &rank));
  CHECK(rank == 2 && dims[0] == 3 && dims[1] == 10);
  FAILS(xnnd_tensor_read_reals(output, scores, 30), XNND_ERROR_INVALID_STATE, "has not been computed");
  OK(xnnd_tensor_data(input, &data, &size));
  CHECK(size == 3 * 27648);
  for (i = 0; i < size / 4; ++i) ((float *)data)[i] = (float)(i % 6912 % 17) / 8.0f - 1.0f;
  OK(xnnd_session_run(session));
  OK(xnnd_tensor_read_reals(output, scores, 30));
  for (i = 0; i < 3; ++i) expect_same(scores + 10 * i, expected, 10);
  OK(xnnd_session_resize(session, &shape, 1));
  classify(session, scores);
  expect_same(scores, expected, 10);
  xnnd_session_delete(session);
}

static void converted(const char *folder, const char *file) {
  xnnd_model_t *model = NULL, *blob = NULL;
  xnnd_session_t *session = NULL;
  xnnd_bytes_t *bytes = NULL, *packed = NULL;
  xnnd_format_t format = XNND_FORMAT_TFLITE;
  xnnd_options_t *options = xnnd_options_new();
  float expected[10], scores[10];

  OK(xnnd_model_open(model_path(folder, FP32), NULL, &model));
  OK(xnnd_session_new(model, NULL, &session));
  classify(session, expected);
  xnnd_session_delete(session);

  OK(xnnd_model_convert(model, NULL, XNND_CONVERT_REQUIRE_FULL, &format, &bytes));
  CHECK(format == XNND_FORMAT_BLOB && xnnd_bytes_size(bytes) > 1000);
  OK(xnnd_model_from_copy(xnnd_bytes_data(bytes), xnnd_bytes_size(bytes), NULL, &blob));
  xnnd_bytes_delete(bytes);
  CHECK(xnnd_model_format(blob) == XNND_FORMAT_BLOB && xnnd_model_signature_count(blob) == 0);
  OK(xnnd_session_new(blob, NULL, &session));
  classify(session, scores);
  expect_same(scores, expected, 10);
  xnnd_session_delete(session);
  FAILS(xnnd_model_explain_json(blob, NULL, &bytes), XNND_ERROR_INVALID_ARGUMENT, "is a blob");
  FAILS(xnnd_model_convert(blob, NULL, 0, NULL, &bytes), XNND_ERROR_INVALID_ARGUMENT, "is a blob");
  OK(xnnd_model_convert(blob, NULL, XNND_CONVERT_PACK, NULL, &packed));
  CHECK(xnnd_bytes_size(packed) > 1000);
  xnnd_bytes_delete(packed);
  OK(xnnd_options_set_signature(options, "serving_default"));
  FAILS(xnnd_session_new(blob, options, &session), XNND_ERROR_INVALID_ARGUMENT, "the signatures are: none");
  xnnd_model_delete(blob);

  OK(xnnd_model_convert_to_file(model, NULL, XNND_CONVERT_PACK, file, &format));
  CHECK(format == XNND_FORMAT_BLOB);
  OK(xnnd_model_open(file, NULL, &blob));
  OK(xnnd_session_new(blob, NULL, &session));
  classify(session, scores);
  expect_same(scores, expected, 10);
  xnnd_session_delete(session);
  xnnd_model_delete(blob);
  remove(file);

  /* Partially delegated: a model that holds blobs. */
  xnnd_options_delete(options);
  options = xnnd_options_new();
  OK(xnnd_options_set(options, "disable", "MEAN"));
  OK(xnnd_options_set(options, "keep_small", "true"));
  OK(xnnd_model_convert(model, options, 0, &format, &bytes));
  CHECK(format == XNND_FORMAT_TFLITE);
  OK(xnnd_model_from_copy(xnnd_bytes_data(bytes), xnnd_bytes_size(bytes), NULL, &blob));
  OK(xnnd_session_new(blob, NULL, &session));
  classify(session, scores);
  xnnd_session_delete(session);
  xnnd_model_delete(blob);
  xnnd_bytes_delete(bytes);
  xnnd_options_delete(options);
  xnnd_model_delete(model);
}

static void reports(const char *folder) {
  xnnd_options_t *options = xnnd_options_new();
  xnnd_model_t *model = NULL;
  xnnd_session_t *session = NULL;
  xnnd_bytes_t *json = NULL;
  float scores[10];
  OK(xnnd_options_set_profile(options, true));
  OK(xnnd_model_open(model_path(folder, FP32), NULL, &model));
  OK(xnnd_session_new(model, options, &session));
  OK(xnnd_session_coverage_json(session, &json));
  expect_text(json, "\"fully_delegated\":true");
  classify(session, scores);
  OK(xnnd_session_profile_json(session, &json));
  expect_text(json, "\"origin\":\"CONV_2D#");
  xnnd_session_delete(session);
  OK(xnnd_options_set(options, "disable", "SOFTMAX"));
  OK(xnnd_model_explain_json(model, options, &json));
  expect_text(json, "\"subgraph\":0");
  OK(xnnd_model_explain_json(model, options, &json));
  expect_text(json, "SOFTMAX");
  OK(xnnd_options_set(options, "keep_small", "true"));
  OK(xnnd_session_new(model, options, &session));
  OK(xnnd_session_coverage_json(session, &json));
  expect_text(json, "\"fully_delegated\":false");
  classify(session, scores);
  FAILS(xnnd_session_profile_json(session, &json), XNND_ERROR_INVALID_STATE, "not fully delegated");
  CHECK(json == NULL);
  xnnd_session_delete(session);
  xnnd_model_delete(model);
  xnnd_options_delete(options);
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: %s MODELS FILE\n", argv[0]), 2;
  tensors(argv[1]);
  bound(argv[1], NULL);
  bound(argv[1], "SOFTMAX");
  resized(argv[1]);
  converted(argv[1], argv[2]);
  reports(argv[1]);
  printf("run: %d checks\n", checks);
  return 0;
}
