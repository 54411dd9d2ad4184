// Copies of a few bytes, such as a channel or a few of each pixel. The C library takes most of its time to find out how to copy them.

#ifndef XNNPACK_SYS_COPY_H
#define XNNPACK_SYS_COPY_H

#include <stddef.h>
#include <string.h>

// Copies `bytes` by two copies of `size` that overlap. Both are read before one is written. Compilers make instructions of them.
#define COPY_ENDS(size) \
  if (bytes >= (size)) { \
    char front[size]; \
    char back[size]; \
    memcpy(front, from, size); \
    memcpy(back, (const char*) from + bytes - (size), size); \
    memcpy(to, front, size); \
    memcpy((char*) to + bytes - (size), back, size); \
    return; \
  }

// Memory does not overlap, or is the same.
static inline void xnnpack_sys_copy(void* to, const void* from, size_t bytes) {
  if (bytes > 32) {
    memcpy(to, from, bytes);
    return;
  }
  COPY_ENDS(16)
  COPY_ENDS(8)
  COPY_ENDS(4)
  COPY_ENDS(2)
  COPY_ENDS(1)
}

#undef COPY_ENDS

#endif
