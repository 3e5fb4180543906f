/* SPDX-License-Identifier: Apache-2.0 */
/* The log: silent unless an ASCEND_* variable asks for it (docs/runtime.md, "Log").
 *
 *   ASCEND_GLOBAL_LOG_LEVEL      0 debug, 1 info, 2 warning, 3 error (default), 4 none
 *   ASCEND_MODULE_LOG_LEVEL      MODULE=n[:MODULE=n], modules APP and POOLGRAD
 *   ASCEND_LOG_PRINT_TO_STDOUT   1: lines go to stdout (ASCEND_SLOG_PRINT_TO_STDOUT: older name)
 *   ASCEND_PROCESS_LOG_PATH      folder: lines go to debug/plog/plog-<pid>_<time>.log in it */
#ifndef PG_LOG_H_
#define PG_LOG_H_

#include <stdbool.h>

#include "acl/acl_base.h"

/* Reads the variables again; aclInit calls it. */
void pg_log_configure(void);

/* One line of the library's own. */
#define pg_log(level, ...) pg_log_line(level, __FILE__, __LINE__, __VA_ARGS__)
void pg_log_line(aclLogLevel level, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
