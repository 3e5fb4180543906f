/* SPDX-License-Identifier: Apache-2.0 */
/* Failing with a sentence.
 *
 * Every fallible function returns CANN's own status (aclError and aclnnStatus are both int).
 * The public call that fails stores one sentence for its thread; aclGetRecentErrMsg reads it. */
#ifndef PG_STATUS_H_
#define PG_STATUS_H_

#include <stdbool.h>

#include "acl/acl_base.h"

/* An asynchronous failure, on its way from a stream to the thread that synchronises. */
struct pg_failure {
  aclError code; /* ACL_SUCCESS when there is none */
  char text[512];
};

/* Stores "api: sentence" for the calling thread and gives code.  Runtime-layer codes
 * (107xxx, 207xxx, 507xxx) also become the thread's last error; others only take the place of one.
 * The line in the log names the place of the macro.  A macro also so that the compiler sees the
 * code and knows the failing path.
 */
#define pg_fail(api, code, ...) (pg_fail_with(api, code, __VA_ARGS__), (code))
#define pg_fail_with(api, code, ...) pg_fail_at(__FILE__, __LINE__, code, api, code, __VA_ARGS__)

/* The same under the title of another code, where CANN has one code for unlike things: a caller's
 * mistake and a lack of memory are no inner errors. */
#define pg_fail_titled(like, api, code, ...) \
  (pg_fail_at(__FILE__, __LINE__, like, api, code, __VA_ARGS__), (code))
void pg_fail_at(const char *file, int line, int like, const char *api, int code, const char *format,
                ...) __attribute__((format(printf, 6, 7)));

/* The same for a pointer argument that must not be NULL. */
#define pg_fail_null(api, code, argument) (pg_fail_null_with(api, code, argument), (code))
#define pg_fail_null_with(api, code, argument) \
  pg_fail_null_at(__FILE__, __LINE__, api, code, argument)
void pg_fail_null_at(const char *file, int line, const char *api, int code, const char *argument);

/* The failure before was the answer to a question: the last error is again what
 * aclrtPeekAtLastError gave before it, and its sentence gives way to the next failure's. */
void pg_was_answer(aclError before);

/* Passes a failure of the runtime on under aclnn's code, keeping its sentence. */
#define pg_recode(code) (pg_recode_with(code), (code))
void pg_recode_with(int code);

/* Writes a failure for later; the thread that synchronises turns it into pg_fail. */
void pg_failure_set(struct pg_failure *failure, aclError code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The boundary: what the caller got wrong, with the values in the sentence. */
#define PG_CHECK(cond, code, ...)                             \
  do {                                                        \
    if (!(cond)) return pg_fail(__func__, code, __VA_ARGS__); \
  } while (0)

/* The same in a function that checks on behalf of `api`. */
#define PG_CHECK_AS(api, cond, code, ...)                \
  do {                                                   \
    if (!(cond)) return pg_fail(api, code, __VA_ARGS__); \
  } while (0)

#define PG_CHECK_PTR(pointer, code)                                       \
  do {                                                                    \
    if ((pointer) == NULL) return pg_fail_null(__func__, code, #pointer); \
  } while (0)

/* Forwards a failure that already has its sentence. */
#define PG_TRY(expr)                        \
  do {                                      \
    const int pg_status_ = (expr);          \
    if (pg_status_ != 0) return pg_status_; \
  } while (0)

#endif
