/* A TCG plugin that counts the instructions of a program, and writes the count at each reading of the clock.
 *
 * A benchmark reads the clock before and after each run, so differences are the instructions of runs. QEMU's header is in no
 * package of Debian's; the declarations below are those of its documentation, for plugins of versions 1 to 4 of the interface.
 * PLUGIN_VERSION is a version that the installed QEMU accepts.
 *
 * Usage: qemu-aarch64 -plugin libcount.so,out=FILE,clock=113 PROGRAM
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0 };

typedef void (*tb_translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*tb_executed)(unsigned int vcpu, void *user);
typedef void (*system_call)(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                            uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
typedef void (*at_exit)(qemu_plugin_id_t id, void *user);

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_translated callback);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, tb_executed callback,
                                                 enum qemu_plugin_cb_flags flags, void *user);
extern void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, system_call callback);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, at_exit callback, void *user);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

/* The last readings of the clock; older ones are of start-up and warm-up. */
enum { KEPT = 1 << 14 };

static uint64_t executed;
static uint64_t readings[KEPT];
static size_t count_of_readings;
static int64_t clock_number = -1;
static const char *out;

/* Programs are measured with one thread, so the counter is not shared. */
static void on_block(unsigned int vcpu, void *instructions) {
  (void)vcpu;
  executed += (uintptr_t)instructions;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  const uintptr_t instructions = qemu_plugin_tb_n_insns(tb);
  qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)instructions);
}

static void on_system_call(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                           uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)vcpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (number == clock_number) {
    readings[count_of_readings++ % KEPT] = executed;
  }
}

static void on_exit_of_program(qemu_plugin_id_t id, void *user) {
  (void)id, (void)user;
  FILE *file = fopen(out, "w");
  if (file == NULL) {
    perror(out);
    return;
  }
  const size_t first = count_of_readings > KEPT ? count_of_readings - KEPT : 0;
  for (size_t i = first; i < count_of_readings; i++) {
    fprintf(file, "%" PRIu64 "\n", readings[i % KEPT]);
  }
  fclose(file);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "out=", 4) == 0) {
      out = strdup(argv[i] + 4);
    } else if (strncmp(argv[i], "clock=", 6) == 0) {
      clock_number = strtoll(argv[i] + 6, NULL, 10);
    }
  }
  if (out == NULL || clock_number < 0) {
    fprintf(stderr, "the plugin needs out=FILE and clock=NUMBER\n");
    return -1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
  qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
  return 0;
}
