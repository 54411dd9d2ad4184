/* The delegate of libxnn_delegate.so, for programs that link to it. Programs that load it at run time use
 * TFLite's external delegate (tensorflow/lite/delegates/external) instead, and do not need this header. */
#ifndef XNN_DELEGATE_H_
#define XNN_DELEGATE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteDelegate;

/* Creates a delegate with `count` options, such as "num_threads" = "2"; docs/delegate.md lists them.
 * If an option is not valid, returns NULL and passes a message to `report_error`, which may be NULL. */
struct TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys,
                                                     const char* const* values, size_t count,
                                                     void (*report_error)(const char* message));

/* Destroys a delegate, before or after the interpreters that use it. `delegate` may be NULL. */
void tflite_plugin_destroy_delegate(struct TfLiteDelegate* delegate);

#ifdef __cplusplus
}
#endif

#endif /* XNN_DELEGATE_H_ */
