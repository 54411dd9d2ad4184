// Denormals are switched off for a whole run.
//
// XNNPACK has pthreadpool do that for every step of every operator. To read and to write the processor's control
// register takes ten nanoseconds, a tenth of what small models take. Here the calling thread does it once, and operators
// that it runs alone leave the register as it is (`denormals.h`). What they compute is the same.

#include "xnnpack.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

// XNNPACK's `xnn_invoke_runtime`, under another name.
enum xnn_status xnnpack_sys_invoke_runtime(xnn_runtime_t runtime);

#ifdef __SSE__

// Of operands and of results: the bits that pthreadpool sets.
#define DENORMALS_OFF 0x8040

enum xnn_status xnn_invoke_runtime(xnn_runtime_t runtime) {
  const unsigned int control = _mm_getcsr();
  _mm_setcsr(control | DENORMALS_OFF);
  const enum xnn_status status = xnnpack_sys_invoke_runtime(runtime);
  _mm_setcsr(control);
  return status;
}

#else

enum xnn_status xnn_invoke_runtime(xnn_runtime_t runtime) {
  return xnnpack_sys_invoke_runtime(runtime);
}

#endif
