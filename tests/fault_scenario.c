/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_scenario.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "cpu/workers.h"
#include "runtime/memory.h"

enum { SECONDS_MOST = 60 }; /* of one process: a hang, not a slow machine */

/* Told by the child to the program; shared memory. */
struct outcome {
  int requests, refusals;     /* of the first run */
  int failures, done_without; /* calls that failed cleanly, calls that succeeded all the same */
  int handles;                /* open after the second run */
  struct faults_held before;  /* after the first run */
  struct faults_held held;    /* after the second */
  struct faults_held at_end;  /* after aclFinalize */
  unsigned long moment;       /* when the first run began */
};

static struct outcome *outcome, expected;
static char folder[] = "/tmp/poolgrad-faults-XXXXXX";

/* What is being done, for sentences. */
static const struct scenario *current;
static int current_nth;
static enum faults_mode current_mode;
static bool wrong; /* something was complained about */

static void complain(const char *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void complain(const char *call, const char *format, ...) {
  va_list args;
  wrong = true;
  (void)fprintf(stderr, "%s, request %d refused%s: %s: ", current->name, current_nth,
                current_mode == FAULT_ONCE ? "" : " and all behind it", call);
  va_start(args, format);
  (void)vfprintf(stderr, format, args);
  va_end(args);
  (void)fputc('\n', stderr);
}

bool scenario_expects(bool cond, const char *what) {
  if (!cond) complain("expected", "%s", what);
  return cond;
}

const char *scenario_folder(void) { return folder; }

/* --- one call --------------------------------------------------------------------------------- */

/* What a call that fails must leave as it was.  Executors are not here: a second phase spends its
 * executor whatever comes of it. */
struct effects {
  int handles[PG_EXECUTOR];
  uint64_t used, peak;
};

static _Thread_local struct {
  struct effects before;
  const void *out;
  size_t bytes;
  char copy[64];
} call_state;

static struct effects effects_now(void) {
  struct effects e;
  memset(&e, 0, sizeof e);
  for (int kind = 0; kind < PG_EXECUTOR; kind++)
    e.handles[kind] = pg_handle_count((enum pg_kind)kind);
  pg_memory_usage(0, &e.used, &e.peak);
  e.peak = 0; /* may rise */
  return e;
}

void scenario_begins_call(const void *out, size_t bytes) {
  call_state.before = effects_now();
  call_state.out = out;
  call_state.bytes = bytes <= sizeof call_state.copy ? bytes : sizeof call_state.copy;
  if (out != NULL) memcpy(call_state.copy, out, call_state.bytes);
  faults_begin();
}

static bool is_right_code(int status, int code, unsigned kinds) {
  const int no_thread = code == ACLNN_ERR_RUNTIME_ERROR ? code : ACL_ERROR_RT_NO_STREAM_RESOURCE;
  return ((kinds & 1u << FAULT_MEMORY) != 0 && status == code) ||
         ((kinds & 1u << FAULT_THREAD) != 0 && status == no_thread) ||
         ((kinds & 1u << FAULT_FILE) != 0 && status == ACL_ERROR_INVALID_FILE);
}

static void check_failure(const char *call, int status, int code, unsigned kinds) {
  const char *text = aclGetRecentErrMsg();
  const struct effects after = effects_now();
  if (kinds == 0)
    complain(call, "failed with %d though nothing was refused in it: %s", status,
             text == NULL ? "(no sentence)" : text);
  else if (code == NEVER_FAILS)
    complain(call, "failed with %d, it needs nothing that can be refused", status);
  else if (!is_right_code(status, code, kinds))
    complain(call, "gave %d: %s", status, text == NULL ? "(no sentence)" : text);
  if (text == NULL || strlen(text) < 16) complain(call, "left no sentence");
  if (memcmp(&after, &call_state.before, sizeof after) != 0)
    complain(call, "failed, and yet changed the number of handles or the memory in use");
  if (call_state.out != NULL && memcmp(call_state.out, call_state.copy, call_state.bytes) != 0)
    complain(call, "failed, and yet wrote its result");
}

bool scenario_ends_call(const char *call, int status, int code) {
  faults_end();
  const unsigned kinds = faults_refused_kinds();
  if (status == 0) {
    outcome->done_without += kinds != 0;
    return true;
  }
  outcome->failures++;
  check_failure(call, status, code, kinds);
  return false;
}

bool scenario_ends_wrong_call(const char *call, int status, int code) {
  faults_end();
  const char *text = aclGetRecentErrMsg();
  outcome->done_without += faults_refused_kinds() != 0;
  if (status != code) complain(call, "gave %d instead of %d", status, code);
  if (text == NULL || strlen(text) < 16) complain(call, "left no sentence");
  return status == code;
}

/* --- one process ------------------------------------------------------------------------------ */

static void *run_thread(void *result) {
  if (current->start == SCENARIO_WITH_DEVICE && aclrtSetDevice(0) != ACL_SUCCESS)
    complain("aclrtSetDevice", "%s", aclGetRecentErrMsg());
  *(bool *)result = current->run(current->data);
  if (current->start == SCENARIO_WITH_DEVICE) (void)aclrtResetDevice(0);
  return NULL;
}

/* On a new thread, which has no sentences yet. */
static bool run_once(void) {
  pthread_t thread;
  bool good = false;
  if (pthread_create(&thread, NULL, run_thread, &good) != 0) complain("pthread_create", "failed");
  pthread_join(thread, NULL);
  return good;
}

static int handles_open(void) {
  int count = 0;
  for (int kind = 0; kind < PG_KIND_COUNT; kind++) count += pg_handle_count((enum pg_kind)kind);
  return count;
}

static void live(void) {
  const bool with_device = current->start == SCENARIO_WITH_DEVICE;
  if (with_device && (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS))
    complain("the device", "%s", aclGetRecentErrMsg());
  outcome->moment = faults_moment();
  faults_plan(current_nth, current_mode);
  const bool good = run_once();
  outcome->before = faults_held();
  outcome->requests = faults_requests();
  outcome->refusals = faults_refusals();
  if (good != (outcome->failures == 0) && !wrong) complain("the run", "says %d", (int)good);
  faults_plan(FAULT_NEVER, FAULT_ONCE);
  if (!run_once()) complain("the run afterwards", "fails");
  outcome->handles = handles_open();
  outcome->held = faults_held();
  if (with_device && aclrtResetDevice(0) != ACL_SUCCESS)
    complain("the end", "%s", aclGetRecentErrMsg());
  const aclError status = aclFinalize();
  if (status != ACL_SUCCESS && (with_device || status != ACL_ERROR_REPEAT_FINALIZE))
    complain("aclFinalize", "%s", aclGetRecentErrMsg());
  outcome->at_end = faults_held();
}

/* Workers are started by the first small steps that follow each other soon, in whichever run this
 * is; they stay until aclFinalize, each with memory of its own.  So what is expected grows with the
 * threads that are there now, and by no more than there are workers. */
static struct faults_held with_workers(struct faults_held most, const struct faults_held *is) {
  const int workers = pg_workers_count() - 1, more = is->threads - most.threads;
  const int started = more < 0 ? 0 : more < workers ? more : workers;
  most.threads += started;
  most.maps += started;
  most.blocks += started;
  return most;
}

static void compare_held(const char *when, const struct faults_held *is,
                         const struct faults_held *most) {
  if (is->blocks > most->blocks || is->maps > most->maps || is->files > most->files ||
      is->threads > most->threads)
    complain(when, "%d blocks, %d maps, %d files, %d threads are held, expected are %d, %d, %d, %d",
             is->blocks, is->maps, is->files, is->threads, most->blocks, most->maps, most->files,
             most->threads);
}

/* A second run without refusals holds no more than the first. */
static void compare_runs(void) {
  const struct faults_held most = with_workers(outcome->before, &outcome->held);
  if (!current->ends_late) compare_held("in the end", &outcome->held, &most);
}

/* After the same calls, the last ones without a refusal, no more may be held. */
static void compare(void) {
  if (outcome->handles > expected.handles)
    complain("in the end", "%d handles are open, %d without refusals", outcome->handles,
             expected.handles);
  const struct faults_held most = with_workers(expected.held, &outcome->held);
  if (!current->ends_late) compare_held("in the end", &outcome->held, &most);
  compare_held("after aclFinalize", &outcome->at_end, &expected.at_end);
  if (wrong) {
    (void)fputs("  blocks since the first run:", stderr);
    faults_print_blocks(stderr, outcome->moment);
  }
}

/* cmocka's handlers would end the child as if it had failed by itself. */
static void let_signals_kill(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) (void)signal(signals[i], SIG_DFL);
}

/* Leaves by exit, so that a leak checker looks at every process. */
static void attempt(int nth, enum faults_mode mode) {
  int status = 0;
  memset(outcome, 0, sizeof *outcome);
  (void)fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    let_signals_kill();
    (void)alarm(SECONDS_MOST);
    current_nth = nth;
    current_mode = mode;
    live();
    if (nth == FAULT_NEVER)
      compare_runs();
    else
      compare();
    exit(wrong ? 1 : 0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child)
    fail_msg("no process for the scenario: %s", strerror(errno));
  if (status != 0)
    fail_msg("%s, request %d refused%s: the process ended with status 0x%x%s", current->name, nth,
             mode == FAULT_ONCE ? "" : " and all behind it", (unsigned)status,
             WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ", it hangs" : "");
}

static void refuse_each(enum faults_mode mode, struct outcome *sum) {
  for (int n = 0;; n++) {
    attempt(n, mode);
    if (outcome->refusals == 0 && n >= expected.requests) return; /* there is no such request */
    sum->requests += outcome->refusals > 0; /* a thread of the library may ask between two calls */
    sum->failures += outcome->failures;
    sum->done_without += outcome->done_without;
  }
}

static void every_fault_is_survived(void **state) {
  struct outcome sum = {.requests = 0};
  current = *state;
  attempt(FAULT_NEVER, FAULT_ONCE);
  expected = *outcome;
  assert_true(expected.requests > 0);
  refuse_each(FAULT_ONCE, &sum);
  refuse_each(FAULT_FROM_THEN_ON, &sum);
  print_message("%s: %d requests, %d faults: %d calls failed cleanly, %d did without\n",
                current->name, expected.requests, sum.requests, sum.failures, sum.done_without);
}

static int begin(void **state) {
  (void)state;
  outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return outcome == MAP_FAILED || mkdtemp(folder) == NULL;
}

static int end(void **state) {
  (void)state;
  char command[sizeof folder + 16];
  (void)munmap(outcome, sizeof *outcome);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

int scenarios_run(const struct scenario *scenarios, size_t count, const char *pattern) {
  struct CMUnitTest *tests = calloc(count, sizeof *tests);
  if (tests == NULL) return 1;
  for (size_t i = 0; i < count; i++)
    tests[i] = (struct CMUnitTest){.name = scenarios[i].name,
                                   .test_func = every_fault_is_survived,
                                   .initial_state = (void *)(uintptr_t)&scenarios[i]};
  if (pattern != NULL) cmocka_set_test_filter(pattern);
  const int status = _cmocka_run_group_tests("faults", tests, count, begin, end);
  free(tests);
  return status;
}
