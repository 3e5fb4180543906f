/* SPDX-License-Identifier: Apache-2.0 */
/* Which backends there are: the CPU, and before it CUDA if its plug-in is there and finds a device.
 *
 * The plug-in lies beside the library as libpoolgrad_cuda.so; POOLGRAD_CUDA names another file, or
 * says "off".  It is loaded once and never unloaded: its threads and CUDA's would lose their code.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/log.h"
#include "core/printable.h"
#include "runtime/backend.h"

#define PLUGIN "libpoolgrad_cuda.so"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct pg_backend *backends[PG_BACKENDS_MAX + 1]; /* NULL behind the last */
static char absence[512]; /* why CUDA is not among them; "" when it is */

/* The plug-in's place beside the file that this code is in. */
static bool place_beside(char *path, size_t size) {
  Dl_info here;
  if (dladdr(&once, &here) == 0 || here.dli_fname == NULL) return false;
  const char *slash = strrchr(here.dli_fname, '/');
  if (slash == NULL) return false; /* a program found by its name alone */
  const int folder = (int)(slash + 1 - here.dli_fname);
  const int length = snprintf(path, size, "%.*s%s", folder, here.dli_fname, PLUGIN);
  return length > 0 && (size_t)length < size;
}

static const struct pg_backend *ask_plugin(const char *path) {
  static const char *why; /* asked once in a process */
  pg_plugin_fn *entry = NULL;
  void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (file != NULL) *(void **)&entry = dlsym(file, "poolgrad_cuda_backend");
  if (entry == NULL) {
    snprintf(absence, sizeof absence, "%s", dlerror());
    return NULL;
  }
  const struct pg_backend *backend = entry(sizeof(struct pg_backend), &why);
  if (backend == NULL) snprintf(absence, sizeof absence, "%s", why);
  return backend;
}

static const struct pg_backend *find_cuda(void) {
  char beside[1024];
  const char *named = pg_getenv("POOLGRAD_CUDA");
  if (named != NULL && strcmp(named, "off") == 0) {
    snprintf(absence, sizeof absence, "POOLGRAD_CUDA is off");
    return NULL;
  }
  if (named != NULL && named[0] != '\0') {
    const struct pg_backend *backend = ask_plugin(named);
    if (backend == NULL)
      pg_log(ACL_WARNING, "POOLGRAD_CUDA is '%s', which cannot be used: %s", named, absence);
    return backend;
  }
  if (place_beside(beside, sizeof beside) && access(beside, F_OK) == 0) return ask_plugin(beside);
  snprintf(absence, sizeof absence, "there is no " PLUGIN " beside the library");
  return NULL;
}

static void find(void) {
  const struct pg_backend *cuda = find_cuda();
  int count = 0;
  pg_make_printable(absence, sizeof absence); /* poolgrad_devices has a line for it */
  if (cuda != NULL) backends[count++] = cuda;
  backends[count] = &pg_backend_cpu;
}

const struct pg_backend *pg_backend_at(int i) {
  (void)pthread_once(&once, find);
  return backends[i];
}

const char *pg_backend_absence(const char *name) {
  (void)pthread_once(&once, find);
  return strcmp(name, "cuda") == 0 && absence[0] != '\0' ? absence : NULL;
}
