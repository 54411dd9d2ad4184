// Calls error reporters: stable Rust cannot make a `va_list`.

#include <stdarg.h>

typedef void (*Reporter)(void* user_data, const char* format, va_list args);

void xnn_tflite_c_report(Reporter reporter, void* user_data, const char* format, ...) {
  va_list args;
  va_start(args, format);
  reporter(user_data, format, args);
  va_end(args);
}
