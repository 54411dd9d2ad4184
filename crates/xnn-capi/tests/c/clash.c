/* A program with functions that have names of XNNPACK's, and of its dependencies', links to the static library. */
#include "check.h"

int xnn_initialize(const void *allocator);
int xnn_create_subgraph(void);
int pthreadpool_create(void);
int cpuinfo_initialize(void);

static int calls;
int xnn_initialize(const void *allocator) { return (void)allocator, ++calls; }
int xnn_create_subgraph(void) { return ++calls; }
int pthreadpool_create(void) { return ++calls; }
int cpuinfo_initialize(void) { return ++calls; }

int main(int argc, char **argv) {
  xnnd_session_t *session;
  float scores[10];
  if (argc < 2) return fprintf(stderr, "usage: %s MODELS\n", argv[0]), 2;
  session = open_session(argv[1], INT8, NULL);
  classify(session, scores);
  xnnd_session_delete(session);
  CHECK(calls == 0);
  CHECK(xnn_initialize(NULL) + xnn_create_subgraph() + pthreadpool_create() + cpuinfo_initialize() == 10);
  printf("clash: %d checks\n", checks);
  return 0;
}
