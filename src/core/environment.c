/* SPDX-License-Identifier: Apache-2.0 */
#include "core/environment.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

/* All variables that the library reads.  What is quoted, and numbers, are words that a value may
 * be or be made of: tools/check_variables.py compares them with the manuals. */
static const struct pg_variable variables[] = {
    {"POOLGRAD_CUDA", "the file of the CUDA plug-in, or 'off'",
     "'libpoolgrad_cuda.so' in the library's own folder"},
    {"POOLGRAD_DEVICES", "a comma list of 'cuda', 'cuda:N' and 'cpu'",
     "all CUDA devices, or 'cpu' where there are none"},
    {"POOLGRAD_INDEX_CHECK", "'warn', 'error' or 'off'", "'warn'"},
    {"POOLGRAD_ISA", "'avx512', 'avx2', 'neon' or 'scalar'", "the best that the CPU can run"},
    {"POOLGRAD_SOC",
     "a name that begins with 'Ascend910B', 'Ascend910_93', 'Ascend950' or 'Ascend910_95'",
     "all that any product allows"},
    {"POOLGRAD_STREAM_BYTES", "a number of bytes from 1 on",
     "an eighth of the last-level cache, 4 MiB at most"},
    {"POOLGRAD_STRICT", "0 or 1", "0"},
    {"POOLGRAD_THREADS", "1 to 1024", "as many as the CPUs that this process may use"},
    {"ASCEND_GLOBAL_LOG_LEVEL", "0 (debug), 1 (info), 2 (warning), 3 (error) or 4 (none)", "3"},
    {"ASCEND_HOME_PATH", "the folder of the installation", "versions of packages are not known"},
    {"ASCEND_LOG_PRINT_TO_STDOUT", "0 or 1", "0"},
    {"ASCEND_MODULE_LOG_LEVEL", "'APP=n', 'POOLGRAD=n', or both with a colon between",
     "the global level"},
    {"ASCEND_PROCESS_LOG_PATH", "a folder", "no file is written"},
    {"ASCEND_RT_VISIBLE_DEVICES", "a comma list of ascending ids", "all devices"},
    {"ASCEND_SLOG_PRINT_TO_STDOUT", "0 or 1", "0"},
};

enum { COUNT = sizeof variables / sizeof variables[0], NAME_MOST = 63, NEAR = 2 };

static const char own[] = "POOLGRAD_";

static const struct pg_variable *find(const char *name) {
  for (int i = 0; i < COUNT; i++)
    if (strcmp(variables[i].name, name) == 0) return &variables[i];
  return NULL;
}

const struct pg_variable *pg_variable(const char *name) {
  const struct pg_variable *row = find(name);
  assert(row != NULL);
  return row;
}

static int least(int a, int b) { return a < b ? a : b; }

/* How many letters must be put in, taken out or changed to make one word of the other. */
static int distance(const char *a, const char *b) {
  int row[NAME_MOST + 1];
  const int length = (int)strlen(b);
  for (int j = 0; j <= length; j++) row[j] = j;
  for (int i = 1; a[i - 1] != '\0'; i++) {
    int before = row[0]; /* of the letters before both */
    row[0] = i;
    for (int j = 1; j <= length; j++) {
      const int changed = before + (a[i - 1] != b[j - 1]);
      before = row[j];
      row[j] = least(changed, least(row[j], row[j - 1]) + 1);
    }
  }
  return row[length];
}

/* The known name that was probably meant, or NULL. */
static const char *nearest(const char *name) {
  const int letters = (int)(strlen(name) - strlen(own));
  /* Of a short name half of the letters may differ: with NEAR of them any name would be near. */
  int fewest = least((letters + 1) / 2, NEAR);
  const char *found = NULL;
  for (int i = 0; i < COUNT; i++) {
    const int far = distance(variables[i].name, name);
    if (far > fewest || (found != NULL && far == fewest)) continue;
    fewest = far;
    found = variables[i].name;
  }
  return found;
}

static void say_unknown(const char *name) {
  char known[512] = "";
  const char *meant = nearest(name);
  if (meant != NULL) {
    pg_log(ACL_WARNING, "%s is set and has no meaning, perhaps %s was meant", name, meant);
    return;
  }
  for (int i = 0; i < COUNT; i++)
    if (strncmp(variables[i].name, own, strlen(own)) == 0)
      snprintf(known + strlen(known), sizeof known - strlen(known), " %s", variables[i].name);
  pg_log(ACL_WARNING, "%s is set and has no meaning, known are:%s", name, known);
}

/* A program with changed privileges has no log, so that nothing of this is said there either. */
void pg_variables_check(void) {
  static atomic_flag done = ATOMIC_FLAG_INIT;
  char name[NAME_MOST + 1];
  if (atomic_flag_test_and_set(&done) || environ == NULL) return;
  for (char **entry = environ; *entry != NULL; entry++) {
    if (strncmp(*entry, own, strlen(own)) != 0) continue;
    const size_t length = strcspn(*entry, "=");
    snprintf(name, sizeof name, "%.*s", (int)(length < NAME_MOST ? length : NAME_MOST), *entry);
    if (length > NAME_MOST || find(name) == NULL) say_unknown(name);
  }
}
