/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose privileges changed when it was started does not obey the environment.  A copy of
 * this program, set-group-id to a group that is not ours, is such a program; only root can make
 * one. */
#include "expect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "poolgrad.h"

enum { ANOTHER_GROUP = 65534, NOT_PRIVILEGED = 77 };

#define NO_PLUGIN "/nowhere/plugin.so"
#define PRODUCT "Ascend950PR_test"

/* What the copy does: its exit status says what it obeys, a bit for each variable. */
static int look_around(bool privileged) {
  int obeyed = 0;
  if ((getauxval(AT_SECURE) != 0) != privileged) return NOT_PRIVILEGED;
  if (aclInit(NULL) != ACL_SUCCESS) return 32;
  obeyed |= strcmp(aclrtGetSocName(), PRODUCT) == 0 ? 1 : 0;
  obeyed |= strstr(poolgrad_devices(), NO_PLUGIN) != NULL ? 2 : 0;
  aclAppLog(ACL_ERROR, "func", "file", 1, "text");
  return aclFinalize() == ACL_SUCCESS ? obeyed : 33;
}

static char folder[] = "/tmp/poolgrad-privileged-XXXXXX";

static void copy_self(const char *to) {
  char bytes[1 << 16];
  const int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0700);
  assert_true(in >= 0 && out >= 0);
  for (ssize_t count; (count = read(in, bytes, sizeof bytes)) > 0;)
    assert_int_equal(write(out, bytes, (size_t)count), count);
  close(in);
  close(out);
}

static int run(const char *program, const char *how) {
  int status;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char log[128];
    snprintf(log, sizeof log, "%s/log", folder);
    setenv("POOLGRAD_SOC", PRODUCT, 1);
    setenv("POOLGRAD_CUDA", NO_PLUGIN, 1);
    setenv("POOLGRAD_DEVICES", "cpu", 1);
    setenv("ASCEND_PROCESS_LOG_PATH", log, 1);
    execl(program, program, how, (char *)NULL);
    _exit(99);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static bool has_log(void) {
  char log[128];
  snprintf(log, sizeof log, "%s/log", folder);
  return access(log, F_OK) == 0;
}

static void remove_all(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void privileged_programs_obey_no_variable(void **state) {
  (void)state;
  char program[128];
#if defined(EMULATED)
  SKIP("this machine starts no programs of another processor by themselves");
#endif
  assert_non_null(mkdtemp(folder));
  snprintf(program, sizeof program, "%s/program", folder);
  copy_self(program);
  if (chown(program, (uid_t)-1, ANOTHER_GROUP) != 0 || chmod(program, 02755) != 0) {
    remove_all();
    SKIP("only root can make a set-group-id program of another group");
  }
  const int obeyed = run(program, "privileged");
  const bool logged = has_log();
  assert_int_equal(chmod(program, 0755), 0);
  const int plain = run(program, "plain");
  const bool plain_logged = has_log();
  remove_all();
  if (obeyed == NOT_PRIVILEGED)
    SKIP("programs in /tmp do not gain privileges (nosuid, no_new_privs)");
  assert_int_equal(obeyed, 0);
  assert_false(logged);
  assert_int_equal(plain, 3); /* without privileges the variables count */
  assert_true(plain_logged);
}

int main(int count, char **words) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(privileged_programs_obey_no_variable)};
  if (count > 1) return look_around(strcmp(words[1], "privileged") == 0);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
