/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/backend.h"

const struct pg_backend *const pg_backends[] = {&pg_backend_cpu, NULL};
