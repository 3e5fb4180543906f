/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of device the current one is. */
#ifndef PG_TESTS_DEVICE_H_
#define PG_TESTS_DEVICE_H_

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "poolgrad.h"

/* A GPU's memory is out of the host's reach.  poolgrad_devices() has lines as "1: cuda:0 (...)". */
static inline bool device_is_cuda(int device) {
  char begin[32];
  snprintf(begin, sizeof begin, "%d: cuda", device);
  for (const char *line = poolgrad_devices(); line != NULL && *line != '\0';) {
    if (strncmp(line, begin, strlen(begin)) == 0) return true;
    line = strchr(line, '\n');
    if (line != NULL) line++;
  }
  return false;
}

static inline bool on_cuda(void) {
  int32_t device = 0;
  return aclrtGetDevice(&device) == ACL_SUCCESS && device_is_cuda(device);
}

/* The end of a program that needs a GPU where there is none: one line says why, and ctest takes the
 * status for a skip. why may be the library's sentence, of which only the cause is told. */
static inline int skip_without_gpu(const char *why) {
  static const char before_cause[] = "no device here: ";
  const char *cause = strstr(why, before_cause);
  if (cause != NULL) why = cause + strlen(before_cause);
  printf("skipped: no GPU to use: %.*s (tests/cuda/check_cuda.sh runs this where there is one)\n",
         (int)strcspn(why, ";\n"), why);
  return 77;
}

#endif
