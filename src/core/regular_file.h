/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the program names are regular files: opening a pipe would wait for its other end, and
 * a device may never end. */
#ifndef PG_REGULAR_FILE_H_
#define PG_REGULAR_FILE_H_

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens it for reading; NULL when that cannot be done, or (*other) when it is something else. */
static inline FILE *pg_open_regular(const char *path, bool *other) {
  struct stat found;
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  *other = file >= 0 && (fstat(file, &found) != 0 || !S_ISREG(found.st_mode));
  FILE *opened = file < 0 || *other ? NULL : fdopen(file, "r");
  if (file >= 0 && opened == NULL) close(file);
  return opened;
}

#endif
