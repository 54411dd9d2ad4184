// glibc's `_dl_find_object` for other C libraries: finds the unwinding tables of the code at an address. GCC's library that unwinds
// the stack calls it if GCC was built with glibc 2.35 or later.

#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct object {
  unsigned long long flags;
  void* start;
  void* end;
  struct link_map* map;
  void* tables;
  unsigned long long reserved[7];
};

struct search {
  uintptr_t address;
  struct object* object;
};

static int look(struct dl_phdr_info* info, size_t size, void* argument) {
  (void) size;
  const struct search* search = argument;
  int is_inside = 0;
  void* tables = NULL;
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_LOAD && start <= search->address && search->address < end) {
      is_inside = 1;
      search->object->start = (void*) start;
      search->object->end = (void*) end;
    } else if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
      tables = (void*) start;
    }
  }
  search->object->tables = tables;
  return is_inside && tables != NULL;
}

int _dl_find_object(void* address, struct object* object) {
  struct search search = {(uintptr_t) address, object};
  return dl_iterate_phdr(look, &search) != 0 ? 0 : -1;
}
