/* SPDX-License-Identifier: Apache-2.0 */
/* The time of day for sentences and the log. */
#ifndef PG_LOCAL_TIME_H_
#define PG_LOCAL_TIME_H_

#include <time.h>

/* localtime_r, safe across forks: glibc's has a lock of its own, which a child of the process would
 * find locked for ever if another thread was inside at the fork.  Threads of the library are kept
 * out of it then; a thread of the program that calls localtime_r by itself is not. */
void pg_local_time(time_t seconds, struct tm *local);

#endif
