// A program that links to TFLite's library and runs the model of its first argument. It exits with 0 if that works.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Declarations of TFLite's `c_api.h`.
extern const char* TfLiteVersion(void);
extern void* TfLiteModelCreateFromFile(const char* path);
extern void* TfLiteInterpreterOptionsCreate(void);
extern void TfLiteInterpreterOptionsDelete(void* options);
extern void* TfLiteInterpreterCreate(const void* model, const void* options);
extern int TfLiteInterpreterAllocateTensors(void* interpreter);
extern int TfLiteInterpreterInvoke(void* interpreter);
extern void* TfLiteInterpreterGetInputTensor(const void* interpreter, int32_t index);
extern const void* TfLiteInterpreterGetOutputTensor(const void* interpreter, int32_t index);
extern size_t TfLiteTensorByteSize(const void* tensor);
extern void TfLiteInterpreterDelete(void* interpreter);
extern void TfLiteModelDelete(void* model);

int main(int count, char** arguments) {
  void* model = count == 2 ? TfLiteModelCreateFromFile(arguments[1]) : NULL;
  if (model == NULL) return 2;
  void* options = TfLiteInterpreterOptionsCreate();
  void* interpreter = TfLiteInterpreterCreate(model, options);
  TfLiteInterpreterOptionsDelete(options);
  TfLiteModelDelete(model);
  if (interpreter == NULL || TfLiteInterpreterAllocateTensors(interpreter) != 0) return 3;
  if (TfLiteTensorByteSize(TfLiteInterpreterGetInputTensor(interpreter, 0)) == 0) return 4;
  if (TfLiteInterpreterInvoke(interpreter) != 0) return 5;
  size_t size = TfLiteTensorByteSize(TfLiteInterpreterGetOutputTensor(interpreter, 0));
  printf("TFLite %s: %zu bytes\n", TfLiteVersion(), size);
  TfLiteInterpreterDelete(interpreter);
  return size == 0;
}
