// See `alone.c`.

#ifndef XNNPACK_SYS_ALONE_H
#define XNNPACK_SYS_ALONE_H

#include <stdint.h>

// Number of threads that every pool claims to have, and a null pool, too.
uint32_t xnnpack_sys_pool_threads(void);

#endif
