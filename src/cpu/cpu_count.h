/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PG_CPU_COUNT_H_
#define PG_CPU_COUNT_H_

/* CPUs this process may use: its affinity mask, cut to the container's quota. */
int pg_cpu_count(void);

#endif
