/* The delegate of libxnn_delegate.so, for programs that link it. Programs that load it at run time use
 * TFLite's external delegate (tensorflow/lite/delegates/external) instead, and need no header. */
#ifndef XNN_DELEGATE_H_
#define XNN_DELEGATE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteDelegate;

/* Makes a delegate from `count` options, such as "num_threads" = "2"; docs/delegate.md lists them.
 * Where an option is not understood the result is NULL and `report_error`, unless it is NULL, gets a
 * message. */
struct TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys,
                                                     const char* const* values, size_t count,
                                                     void (*report_error)(const char* message));

/* Destroys a delegate, before or after the interpreters that use it. NULL is allowed. */
void tflite_plugin_destroy_delegate(struct TfLiteDelegate* delegate);

#ifdef __cplusplus
}
#endif

#endif /* XNN_DELEGATE_H_ */
