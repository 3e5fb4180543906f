/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu_count.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "core/thread.h"

static int affinity_count(void) {
  cpu_set_t set; /* 1024 CPUs; on a larger machine the call fails and sysconf answers */
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

/* cgroup v2: "max 100000" or "200000 100000" = quota and period in microseconds. */
static int quota_count(int otherwise) {
  const int cancel = pg_cancel_off(); /* the file would stay open */
  FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
  long long quota = 0, period = 0;
  const int found = file == NULL ? 0 : fscanf(file, "%lld %lld", &quota, &period);
  if (file != NULL) fclose(file);
  pg_cancel_restore(cancel);
  if (found != 2 || quota <= 0 || period <= 0) return otherwise;
  const long long cpus = (quota + period - 1) / period;
  return cpus < otherwise ? (int)cpus : otherwise;
}

int pg_cpu_count(void) {
  const int cpus = quota_count(affinity_count());
  return cpus > 1 ? cpus : 1;
}
