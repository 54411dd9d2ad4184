// Memory for intermediate tensors has to be zeros, but need not be written before a graph runs: writing took half of the time to
// load a packed model.

// For `madvise`.
#define _DEFAULT_SOURCE

#include "memory/workspace.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "xnnpack/allocator.h"

// Returns how many bytes at the start of `memory` the system turns into zeros: whole huge pages, which the allocator of the crate
// `xnnpack` uses. The system clears pages when they are first used.
static size_t give_back(void* memory, size_t size) {
#ifdef __linux__
  const size_t huge_page = (size_t) 1 << 21;
  const size_t whole = size - size % huge_page;
  // Fails if memory is locked.
  if ((uintptr_t) memory % huge_page == 0 && whole != 0 && madvise(memory, whole, MADV_DONTNEED) == 0) {
    return whole;
  }
#else
  (void) memory;
  (void) size;
#endif
  return 0;
}

void* xnnpack_sys_allocate_zeros(size_t size) {
  void* memory = xnn_allocate_simd_memory(size);
  if (memory != NULL) {
    const size_t zeros = give_back(memory, size);
    memset((char*) memory + zeros, 0, size - zeros);
  }
  return memory;
}
