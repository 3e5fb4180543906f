/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in for tests: a backend called cuda with two devices, off the host as far as the runtime
 * can tell, and made of the CPU's functions.  What the runtime does for devices that cannot touch
 * each other's memory is tested with it where there is no GPU. */
#ifndef PG_TESTS_SECOND_BACKEND_H_
#define PG_TESTS_SECOND_BACKEND_H_

#include <stdatomic.h>

#include "runtime/backend.h"

enum { SECOND_DEVICES = 2 };

struct second_backend {
  const struct pg_backend *cpu; /* the program's; set before the library looks for plug-ins */
  const char *absence;          /* the plug-in does not serve, and says so; NULL: it serves */
  atomic_int copies, fills;     /* how many it was asked for, outside of queues */
  atomic_int refusal;           /* what all but queues fail with; 0: not */
  atomic_bool captured;         /* its queues take nothing, as while CUDA captures the stream */
};

/* Exported beside poolgrad_cuda_backend. */
typedef struct second_backend *second_backend_fn(void);

#endif
