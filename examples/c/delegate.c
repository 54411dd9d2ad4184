/* One run of a model through TFLite's C API, with the delegate.
 *
 *   cc delegate.c -I INCLUDE -I ../../crates/xnn-tflite-delegate/include -L LIB -ltensorflowlite_c \
 *      -L ../../target/release -lxnn_delegate -o delegate
 *
 * INCLUDE and LIB are those of TFLite's C library. */
#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/lite/c/c_api.h"
#include "xnn_delegate.h"

int main(int argc, char** argv) {
  TfLiteModel* model = argc > 1 ? TfLiteModelCreateFromFile(argv[1]) : NULL;
  if (model == NULL) return fprintf(stderr, "usage: %s MODEL\n", argv[0]), EXIT_FAILURE;

  /* The delegate: made from options, given to the interpreter, destroyed in the end. */
  const char* keys[] = {"num_threads"};
  const char* values[] = {"2"};
  TfLiteDelegate* delegate = tflite_plugin_create_delegate(keys, values, 1, NULL);
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddDelegate(options, delegate);

  /* From here on all is as without it. */
  TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
  int ok = interpreter != NULL && TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk &&
           TfLiteInterpreterInvoke(interpreter) == kTfLiteOk;
  if (ok) {
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter, 0);
    printf("%s: %zu bytes\n", TfLiteTensorName(output), TfLiteTensorByteSize(output));
  }
  TfLiteInterpreterDelete(interpreter);
  TfLiteInterpreterOptionsDelete(options);
  tflite_plugin_destroy_delegate(delegate);
  TfLiteModelDelete(model);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
