/* SPDX-License-Identifier: Apache-2.0 */
/* Short programs against the public API in which every request for a resource fails in turn.
 *
 * A scenario runs in a process of its own for each request that it makes, so that what the library
 * does only once can fail as well: once with the nth request refused, or all from the nth on, then
 * again without any refusal.  Each call must succeed, or fail cleanly: with the right code, a
 * sentence, and no effect.  The second run must succeed, and in the end no more may be held than
 * after two runs without refusals. */
#ifndef PG_TESTS_FAULT_SCENARIO_H_
#define PG_TESTS_FAULT_SCENARIO_H_

#include <stddef.h>

#include "expect.h"
#include "faults.h"

enum scenario_start {
  SCENARIO_WITH_DEVICE, /* aclInit and a device are there before anything is refused */
  SCENARIO_COLD         /* the library has not been used */
};

struct scenario {
  const char *name;
  /* On a thread of its own.  True when every TRY was; what it made is gone again in any case. */
  bool (*run)(const void *data);
  const void *data;
  enum scenario_start start;
  bool ends_late; /* threads that nobody waits for end by aclFinalize only */
};

/* A program's main: runs all, or those whose names match its argument (* and ? stand for any). */
int scenarios_run(const struct scenario *scenarios, size_t count, const char *pattern);

/* A call of the library during which requests count.  True when it succeeded.  If it did not, its
 * code must be `code` where memory was refused, 207008 where a thread was (361001 if that is
 * `code`), and 100003 where a file was.  TRY_INTO: the variable that receives the result must then
 * be untouched. */
#define TRY(call, code) TRY_BYTES(NULL, 0, call, code)
#define TRY_INTO(variable, call, code) TRY_BYTES(&(variable), sizeof(variable), call, code)
#define TRY_BYTES(at, bytes, call, code) \
  scenario_ends_call(#call, (scenario_begins_call(at, bytes), (call)), code)

/* The same for a function that returns what it made, or NULL. */
#define MAKE(variable, call) TRY(((variable) = (call)) == NULL ? MADE_NOTHING : 0, MADE_NOTHING)
enum { MADE_NOTHING = -1 };

/* A call that no lack of anything may make fail: giving back and asking. */
#define MUST(call) TRY(call, NEVER_FAILS)
enum { NEVER_FAILS = -2 };

/* A wrong call, which must fail with this code and a sentence, whatever is refused. */
#define WRONG(call, code) \
  scenario_ends_wrong_call(#call, (scenario_begins_call(NULL, 0), (call)), code)

void scenario_begins_call(const void *out, size_t bytes);
bool scenario_ends_call(const char *call, int status, int code);
bool scenario_ends_wrong_call(const char *call, int status, int code);

/* What the scenario sees to be wrong; the sentence ends the process as a failure.  Gives cond. */
#define EXPECT(cond) scenario_expects(cond, #cond)
bool scenario_expects(bool cond, const char *what);

/* A folder for the scenario's files. */
const char *scenario_folder(void);

#endif
