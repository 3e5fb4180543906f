/* SPDX-License-Identifier: Apache-2.0 */
#include "core/soc.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

static const struct pg_soc portable = {.npu_arch = 2201,
                                       .max_half = true,
                                       .max_int64 = true,
                                       .max_dilation = true,
                                       .max_nhwc = true,
                                       .adaptive_max3d_int64 = true};
static const struct pg_soc products[] = {
    {.prefix = "Ascend910B", .npu_arch = 2201},
    {.prefix = "Ascend910_93", .npu_arch = 2201},
#define ASCEND950(name)                                                                          \
  {                                                                                              \
    .prefix = name, .npu_arch = 3510, .max_half = true, .max_int64 = true, .max_dilation = true, \
    .max_nhwc = true, .adaptive_max3d_int64 = true, .large_planes = true, .empty_batch = true    \
  }
    ASCEND950("Ascend950"),
    ASCEND950("Ascend910_95"), /* an older name of the same */
#undef ASCEND950
};
static const char default_name[] = "Ascend910B1";

/* Guards the choice. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct pg_soc *chosen = &portable;
static char chosen_name[64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

const struct pg_soc *pg_soc_find(const char *name) {
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
    if (strncmp(name, products[i].prefix, strlen(products[i].prefix)) == 0) return &products[i];
  return NULL;
}

aclError pg_soc_configure(const char *api) {
  const char *name = getenv("POOLGRAD_SOC");
  const bool unset = name == NULL || name[0] == '\0';
  const struct pg_soc *row = unset ? &portable : pg_soc_find(name);
  if (row == NULL || (!unset && strlen(name) >= sizeof chosen_name))
    return pg_fail(
        api, ACL_ERROR_INVALID_PARAM,
        "POOLGRAD_SOC is '%s', known are names that start with Ascend910B, Ascend910_93, "
        "Ascend950 or Ascend910_95 (unset: portable)",
        name);
  pthread_mutex_lock(&lock);
  chosen = row;
  if (strcmp(chosen_name, unset ? default_name : name) != 0) /* aclrtGetSocName's text stays put */
    snprintf(chosen_name, sizeof chosen_name, "%s", unset ? default_name : name);
  pthread_mutex_unlock(&lock);
  return ACL_SUCCESS;
}

/* For programs that never call aclInit; a wrong name keeps the portable profile here. */
static void configure_once(void) {
  pthread_mutex_lock(&lock);
  const bool configured = chosen_name[0] != '\0';
  pthread_mutex_unlock(&lock);
  if (!configured) (void)pg_soc_configure("POOLGRAD_SOC");
}

const struct pg_soc *pg_soc(void) {
  (void)pthread_once(&once, configure_once);
  pthread_mutex_lock(&lock);
  const struct pg_soc *row = chosen;
  pthread_mutex_unlock(&lock);
  return row;
}

const char *aclrtGetSocName(void) {
  (void)pg_soc();
  return chosen_name[0] != '\0' ? chosen_name : default_name;
}
