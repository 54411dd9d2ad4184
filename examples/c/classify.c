/* Classifies a grey image (PGM) and prints the most likely classes.
 *
 *   cc classify.c $(pkg-config --cflags --libs xnn) -o classify
 *   ./classify ../../models/digits_mobilenet_v2_int8.tflite three.pgm
 *
 * The model is a .tflite, .circle or .xnn file whose input is one image, [1, height, width, channels], with real values
 * from -1 to 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <xnn.h>

#define TOP 3

/* Reads a binary PGM of this size. Returns NULL if the file is another one. */
static unsigned char *read_image(const char *path, size_t height, size_t width) {
  FILE *file = fopen(path, "rb");
  size_t found_width = 0, found_height = 0;
  unsigned char *pixels = malloc(height * width);
  int ok = file != NULL && pixels != NULL &&
           fscanf(file, "P5 %zu %zu 255", &found_width, &found_height) == 2 && fgetc(file) != EOF &&
           found_width == width && found_height == height &&
           fread(pixels, 1, height * width, file) == height * width;
  if (file != NULL) fclose(file);
  if (ok) return pixels;
  free(pixels);
  return NULL;
}

/* Writes the image to all channels of the input, quantized if the model is. */
static xnnd_error_t *fill(const xnnd_tensor_t *input, const unsigned char *pixels, size_t channels) {
  void *data = NULL;
  size_t size = 0, i;
  float scale = 1;
  int64_t zero_point = 0;
  xnnd_type_t type = xnnd_tensor_type(input);
  xnnd_error_t *error = xnnd_tensor_data(input, &data, &size);
  if (error) return error;
  xnnd_tensor_quantization(input, &scale, &zero_point);
  for (i = 0; i < (type == XNND_TYPE_F32 ? size / sizeof(float) : size); ++i) {
    float real = (float)pixels[i / channels] / 127.5f - 1.0f;
    float quantized = roundf(real / scale) + (float)zero_point;
    if (type == XNND_TYPE_F32) ((float *)data)[i] = real;
    if (type == XNND_TYPE_I8) ((int8_t *)data)[i] = (int8_t)fminf(fmaxf(quantized, -128), 127);
    if (type == XNND_TYPE_U8) ((uint8_t *)data)[i] = (uint8_t)fminf(fmaxf(quantized, 0), 255);
  }
  return NULL;
}

static void print_top(const float *scores, size_t count) {
  size_t place, i, last = count;
  for (place = 0; place < TOP && place < count; ++place) {
    size_t best = count;
    for (i = 0; i < count; ++i) {
      int is_later = last == count || scores[i] < scores[last] || (scores[i] == scores[last] && i > last);
      if (is_later && (best == count || scores[i] > scores[best])) best = i;
    }
    printf("class %zu: %.1f %%\n", best, 100.0 * scores[best]);
    last = best;
  }
}

static xnnd_error_t *classify(const xnnd_session_t *session, const char *image) {
  const xnnd_tensor_t *input = NULL, *output = NULL;
  const size_t *dims = NULL;
  size_t rank = 0, count = 1, i;
  unsigned char *pixels;
  float *scores;
  xnnd_error_t *error = xnnd_session_input(session, 0, &input);
  if (!error) error = xnnd_session_output(session, 0, &output);
  if (!error) error = xnnd_tensor_dims(input, &dims, &rank);
  if (error) return error;
  if (rank != 4 || dims[0] != 1) {
    fprintf(stderr, "the input is not one image\n");
    exit(1);
  }
  pixels = read_image(image, dims[1], dims[2]);
  if (!pixels) {
    fprintf(stderr, "%s: expected a binary PGM of %zu x %zu pixels\n", image, dims[2], dims[1]);
    exit(1);
  }
  error = fill(input, pixels, dims[3]);
  free(pixels);
  if (!error) error = xnnd_session_run(session);
  if (!error) error = xnnd_tensor_dims(output, &dims, &rank);
  if (error) return error;
  for (i = 0; i < rank; ++i) count *= dims[i];
  scores = malloc(count * sizeof *scores);
  if (!scores) exit(1);
  error = xnnd_tensor_read_reals(output, scores, count);
  if (!error) print_top(scores, count);
  free(scores);
  return error;
}

int main(int argc, char **argv) {
  xnnd_model_t *model = NULL;
  xnnd_session_t *session = NULL;
  xnnd_error_t *error;
  int failed;
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL IMAGE.pgm\n", argv[0]), 2;

  error = xnnd_model_open(argv[1], NULL, &model);
  if (!error) error = xnnd_session_new(model, NULL, &session);
  if (!error) error = classify(session, argv[2]);

  failed = error != NULL;
  if (failed) fprintf(stderr, "%s\n", xnnd_error_message(error));
  xnnd_error_delete(error);
  xnnd_session_delete(session);
  xnnd_model_delete(model);
  return failed;
}
