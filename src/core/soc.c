/* SPDX-License-Identifier: Apache-2.0 */
#include "core/environment.h"
#include "core/soc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/fork.h"
#include "core/status.h"

static const struct pg_soc portable = {.npu_arch = 3510,
                                       .max_half = true,
                                       .max_int64 = true,
                                       .max_dilation = true,
                                       .max_nhwc = true,
                                       .max3d_int64 = true,
                                       .large_volumes = true,
                                       .masks = true,
                                       .avg3d_empty_batch = true,
                                       .max_pool_integers = true,
                                       .adaptive_max3d_nd = true,
                                       .avg3d_any_planar = true,
                                       .avg3d_long_kernel = true};
static const struct pg_soc products[] = {
    {.prefix = "Ascend910B", .npu_arch = 2201, .masks = true, .avg3d_any_planar = true},
    {.prefix = "Ascend910_93", .npu_arch = 2201, .masks = true, .avg3d_any_planar = true},
    {.prefix = "Ascend950",
     .older_prefix = "Ascend910_95",
     .npu_arch = 3510,
     .max_half = true,
     .max_int64 = true,
     .max_dilation = true,
     .max_nhwc = true,
     .max3d_int64 = true,
     .large_planes = true,
     .large_volumes = true,
     .avg3d_empty_batch = true,
     .avg3d_backward_empty_batch = true,
     .max_pool_integers = true,
     .adaptive_max3d_nd = true},
};
/* What programs see while the portable profile is in force.  Those that choose their operators by
 * the product (PyTorch's adapter) then choose aclnn operators alone: docs/decisions.md. */
static const char default_name[] = "Ascend950PR_9599";

/* Guards choosing.  The row is read without it: every check of every operator asks for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const struct pg_soc *) chosen; /* NULL: not configured */
static const char
    *chosen_name; /* NULL: not configured; names are kept for ever, programs hold them */
static pthread_once_t once = PTHREAD_ONCE_INIT;

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static bool starts_with(const char *name, const char *prefix) {
  return prefix != NULL && strncmp(name, prefix, strlen(prefix)) == 0;
}

const struct pg_soc *pg_soc_find(const char *name) {
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
    if (starts_with(name, products[i].prefix) || starts_with(name, products[i].older_prefix))
      return &products[i];
  return NULL;
}

/* A copy that is never freed, once per name: a process uses one or two.  NULL without memory.  Lock
 * held. */
static const char *keep(const char *name) {
  static struct kept {
    struct kept *next;
    char text[];
  } * all;
  for (const struct kept *k = all; k != NULL; k = k->next)
    if (strcmp(k->text, name) == 0) return k->text;
  struct kept *k = malloc(sizeof *k + strlen(name) + 1);
  if (k == NULL) return NULL;
  memcpy(k->text, name, strlen(name) + 1);
  k->next = all;
  all = k;
  return k->text;
}

aclError pg_soc_configure(const char *api) {
  const char *name = pg_getenv("POOLGRAD_SOC");
  const bool unset = name == NULL || name[0] == '\0';
  const struct pg_soc *row = unset ? &portable : pg_soc_find(name);
  if (row == NULL) return PG_REFUSE_VARIABLE(api, "POOLGRAD_SOC", name);
  pthread_mutex_lock(&lock);
  const char *kept = unset ? default_name : keep(name);
  if (kept != NULL) {
    atomic_store_explicit(&chosen, row, memory_order_release);
    chosen_name = kept;
  }
  pthread_mutex_unlock(&lock);
  PG_CHECK_AS(api, kept != NULL, ACL_ERROR_BAD_ALLOC, "no memory for the product's name");
  return ACL_SUCCESS;
}

/* For programs that never call aclInit; a wrong name keeps the portable profile here. */
static void configure_once(void) {
  pthread_mutex_lock(&lock);
  const bool configured = chosen_name != NULL;
  pthread_mutex_unlock(&lock);
  if (!configured) (void)pg_soc_configure("POOLGRAD_SOC");
}

const struct pg_soc *pg_soc(void) {
  const struct pg_soc *row = atomic_load_explicit(&chosen, memory_order_acquire);
  if (row != NULL) return row;
  (void)pthread_once(&once, configure_once);
  row = atomic_load_explicit(&chosen, memory_order_acquire);
  return row != NULL ? row : &portable;
}

const char *aclrtGetSocName(void) {
  (void)pg_soc();
  pthread_mutex_lock(&lock);
  const char *name = chosen_name != NULL ? chosen_name : default_name;
  pthread_mutex_unlock(&lock);
  return name;
}
