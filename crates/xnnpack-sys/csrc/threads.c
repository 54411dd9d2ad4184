// The threads of a runtime.

#include <pthreadpool.h>

#include "xnnpack.h"
#include "xnnpack/subgraph.h"

void xnnpack_sys_set_threads(xnn_runtime_t runtime, pthreadpool_t threads);

// From the next reshape on, for which operators are cut into tiles.
void xnnpack_sys_set_threads(xnn_runtime_t runtime, pthreadpool_t threads) { runtime->threadpool = threads; }
