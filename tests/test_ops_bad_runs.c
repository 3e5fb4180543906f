/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong second phases of each operator on every device: executors, workspace, streams, and the
 * memory behind the tensors, with one flaw and with two.  Each must give its code and one sentence,
 * queue nothing, and leave every byte and every handle as it was; its executor is spent unless it
 * was never looked at.  Afterwards the right call gives the right bits. */
#include <inttypes.h>
#include <pthread.h>

#include "bad_calls.h"
#include "bad_report.h"
#include "ops_fixture.h"

/* The codes, as the headers have them. */
enum { NULL_POINTER = 161001, INVALID = 161002, REFUSED_STREAM = 361001, NO_EXECUTOR = 561000 };

/* The larger planes are cut, so that the call asks for workspace. */
static const char *const lines[] = {
    "adaptive_max_pool2d f32 i32 in=2x8x16x16 out=8x8 nchw",
    "adaptive_max_pool2d bf16 i64 in=2x128x128 out=32x32 nd",
    "adaptive_max_pool3d f16 i64 in=8x8x8x8 out=4x4x4 ncdhw",
    "adaptive_max_pool3d f32 i32 in=1x2x8x32x64 out=4x16x16 ncdhw grad_in=rows",
    "adaptive_avg_pool3d f32 in=2x4x8x8x8 out=4x4x4 ncdhw",
    "adaptive_avg_pool3d f16 in=8x8x8x8 out=3x5x4 nd grad_in=offset",
    "max_pool2d f16 i32 in=2x16x16x8 kernel=2 nhwc",
    "max_pool2d f32 i64 in=1x2x128x128 kernel=3 stride=2 pad=1 nchw",
    "avg_pool2d f32 in=2x8x16x16 kernel=2 nchw",
    "avg_pool2d bf16 in=8x20x20 kernel=3 stride=2 pad=1 ncl grad_out=gap",
};

/* --- the table ---------------------------------------------------------------------------------
 */

enum place { AT_GRAD_OUT, AT_INDICES = INDICES, AT_GRAD_IN, AT_WORKSPACE, AT_STREAM, AT_EXECUTOR };

enum fault {
  MISSING,   /* NULL */
  DEAD,      /* destroyed */
  SPENT,     /* by an earlier second phase */
  A_TENSOR,  /* a live handle of another kind */
  AN_EVENT,  /* likewise */
  INVENTED,  /* an address that is no handle */
  FOREIGN,   /* given to another operator's second phase */
  ONE_SHORT, /* a byte less than was asked for */
  EMPTY,     /* no byte at all */
  ODD,       /* misaligned */
  OVERRUN,   /* its memory ends too early */
  FAR,       /* its offset leads out of its memory */
  ON_GRAD_OUT,
  ON_INDICES,
  ON_GRAD_IN,
  ELSEWHERE, /* in memory that the stream's device cannot reach */
};

/* What is looked at first is a lower step: the executor, then the workspace as an argument, then
 * the memory of each argument in their order, then what overlaps, then the stream and its reach. */
enum { OWNER_STEP = 3, MEMORY_STEP = 10, OVERLAP_STEP = 20, STREAM_STEP = 30, REACH_STEP = 40 };

static const struct wrong {
  enum place place;
  enum fault fault;
  int code, step;
  const char *what;
} wrongs[] = {
    {AT_EXECUTOR, MISSING, NULL_POINTER, 1, "executor NULL"},
    {AT_EXECUTOR, DEAD, NO_EXECUTOR, 2, "executor destroyed"},
    {AT_EXECUTOR, SPENT, NO_EXECUTOR, 2, "executor spent"},
    {AT_EXECUTOR, A_TENSOR, NO_EXECUTOR, 2, "executor a tensor"},
    {AT_EXECUTOR, AN_EVENT, NO_EXECUTOR, 2, "executor an event"},
    {AT_EXECUTOR, INVENTED, NO_EXECUTOR, 2, "executor invented"},
    {AT_EXECUTOR, FOREIGN, INVALID, OWNER_STEP, "executor of another operator"},
    {AT_WORKSPACE, MISSING, NULL_POINTER, 4, "workspace NULL with a size"},
    {AT_WORKSPACE, ONE_SHORT, INVALID, 5, "workspaceSize short by 1"},
    {AT_WORKSPACE, EMPTY, INVALID, 5, "workspaceSize 0"},
    {AT_WORKSPACE, ODD, INVALID, MEMORY_STEP + AT_WORKSPACE, "workspace misaligned"},
    {AT_WORKSPACE, OVERRUN, INVALID, MEMORY_STEP + AT_WORKSPACE, "workspace past its end"},
    {AT_WORKSPACE, ON_GRAD_OUT, INVALID, OVERLAP_STEP, "workspace on gradOutput"},
    {AT_WORKSPACE, ON_INDICES, INVALID, OVERLAP_STEP, "workspace on indices"},
    {AT_WORKSPACE, ON_GRAD_IN, INVALID, OVERLAP_STEP, "workspace on gradInput"},
    {AT_WORKSPACE, ELSEWHERE, INVALID, REACH_STEP, "workspace on another device"},
    {AT_GRAD_OUT, MISSING, NULL_POINTER, MEMORY_STEP + AT_GRAD_OUT, "gradOutput NULL"},
    {AT_GRAD_OUT, ODD, INVALID, MEMORY_STEP + AT_GRAD_OUT, "gradOutput misaligned"},
    {AT_GRAD_OUT, OVERRUN, INVALID, MEMORY_STEP + AT_GRAD_OUT, "gradOutput past its end"},
    {AT_GRAD_OUT, FAR, INVALID, MEMORY_STEP + AT_GRAD_OUT, "gradOutput's offset"},
    {AT_GRAD_OUT, ON_GRAD_IN, INVALID, OVERLAP_STEP, "gradOutput on gradInput"},
    {AT_GRAD_OUT, ELSEWHERE, INVALID, REACH_STEP, "gradOutput on another device"},
    {AT_INDICES, MISSING, NULL_POINTER, MEMORY_STEP + AT_INDICES, "indices NULL"},
    {AT_INDICES, ODD, INVALID, MEMORY_STEP + AT_INDICES, "indices misaligned"},
    {AT_INDICES, OVERRUN, INVALID, MEMORY_STEP + AT_INDICES, "indices past their end"},
    {AT_INDICES, FAR, INVALID, MEMORY_STEP + AT_INDICES, "indices' offset"},
    {AT_INDICES, ON_GRAD_IN, INVALID, OVERLAP_STEP, "indices on gradInput"},
    {AT_INDICES, ELSEWHERE, INVALID, REACH_STEP, "indices on another device"},
    {AT_GRAD_IN, MISSING, NULL_POINTER, MEMORY_STEP + AT_GRAD_IN, "gradInput NULL"},
    {AT_GRAD_IN, ODD, INVALID, MEMORY_STEP + AT_GRAD_IN, "gradInput misaligned"},
    {AT_GRAD_IN, OVERRUN, INVALID, MEMORY_STEP + AT_GRAD_IN, "gradInput past its end"},
    {AT_GRAD_IN, FAR, INVALID, MEMORY_STEP + AT_GRAD_IN, "gradInput's offset"},
    {AT_GRAD_IN, ELSEWHERE, INVALID, REACH_STEP, "gradInput on another device"},
    {AT_STREAM, DEAD, REFUSED_STREAM, STREAM_STEP, "stream destroyed"},
    {AT_STREAM, A_TENSOR, REFUSED_STREAM, STREAM_STEP, "stream a tensor"},
    {AT_STREAM, AN_EVENT, REFUSED_STREAM, STREAM_STEP, "stream an event"},
    {AT_STREAM, INVENTED, REFUSED_STREAM, STREAM_STEP, "stream invented"},
};
enum { WRONGS = sizeof wrongs / sizeof wrongs[0] };

/* --- a run in the making -----------------------------------------------------------------------
 */

/* What there is on a device to be wrong with. */
struct stage {
  struct trial trial;
  struct bad_call call; /* right; its tensors have their addresses */
  uint64_t wanted;      /* workspaceSize */
  char *corner;         /* 64 bytes before the end of an allocation with 32 more */
  char *elsewhere;      /* memory of another kind of device, or NULL */
  aclrtStream dead_stream;
  aclrtEvent event;
  aclTensor *tensor;
  aclOpExecutor *dead, *spent;
};

enum { CORNER = 64, ELSEWHERE_BYTES = 1 << 18 };

struct run {
  struct bad_call call;
  enum pool_operator second; /* whose second phase */
  void *workspace;
  uint64_t size;
  bool replaced; /* the executor, by this */
  aclOpExecutor *executor;
  aclrtStream stream;
};

static int calls[POOL_OPERATORS], failed;

static bool applies(const struct stage *s, const struct wrong *w) {
  const bool has_indices = problem_is_max(&s->trial.problem);
  if ((w->place == AT_INDICES || w->fault == ON_INDICES) && !has_indices) return false;
  if (w->fault == ELSEWHERE && s->elsewhere == NULL) return false;
  return w->place != AT_WORKSPACE || w->fault == MISSING || s->wanted > 0;
}

static void spoil_memory(const struct stage *s, enum fault fault, void **memory) {
  char *const at = *memory;
  switch (fault) {
    case MISSING:
      *memory = NULL;
      break;
    case ODD:
      *memory = at + 1;
      break;
    case OVERRUN:
      *memory = s->corner + CORNER;
      break;
    case ON_GRAD_OUT:
      *memory = s->trial.memory[GRAD_OUT].device;
      break;
    case ON_INDICES:
      *memory = s->trial.memory[INDICES].device;
      break;
    case ON_GRAD_IN:
      *memory = s->trial.memory[GRAD_IN].device;
      break;
    case ELSEWHERE:
      *memory = s->elsewhere;
      break;
    default:
      fail_msg("memory cannot be wrong in way %d", (int)fault);
  }
}

static void *other_handle(const struct stage *s, enum fault fault) {
  static int no_handle;
  return fault == A_TENSOR   ? (void *)s->tensor
         : fault == AN_EVENT ? s->event
         : fault == INVENTED ? (void *)&no_handle
                             : NULL;
}

static void spoil_executor(const struct stage *s, enum fault fault, struct run *r) {
  if (fault == FOREIGN) {
    r->second = (enum pool_operator)((r->second + 1) % FIRST_OPERATORS);
    return;
  }
  r->replaced = true;
  r->executor = fault == DEAD    ? s->dead
                : fault == SPENT ? s->spent
                                 : (aclOpExecutor *)other_handle(s, fault);
}

static void spoil(const struct stage *s, const struct wrong *w, struct run *r) {
  if (w->place == AT_EXECUTOR)
    spoil_executor(s, w->fault, r);
  else if (w->place == AT_STREAM)
    r->stream = w->fault == DEAD ? s->dead_stream : other_handle(s, w->fault);
  else if (w->fault == FAR)
    r->call.tensor[w->place].offset = INT64_C(1) << 40;
  else if (w->place != AT_WORKSPACE)
    spoil_memory(s, w->fault, &r->call.tensor[w->place].data);
  else if (w->fault == ONE_SHORT || w->fault == EMPTY)
    r->size = w->fault == EMPTY ? 0 : r->size - 1;
  else
    spoil_memory(s, w->fault, &r->workspace);
  if (w->place == AT_WORKSPACE && w->fault == MISSING && r->size == 0) r->size = 64;
}

/* --- making it ---------------------------------------------------------------------------------
 */

static aclOpExecutor *prepare(const struct bad_call *call, uint64_t *size) {
  aclOpExecutor *executor = NULL;
  const struct bad_arguments h = bad_make(call);
  OK_OR_SAY(bad_first_phase(call, &h, size, &executor));
  assert_true(bad_drop(call, &h)); /* the executor has its own hold on them */
  return executor;
}

/* Nothing was queued, and no byte is another one. */
static const char *judge_memory(struct stage *s) {
  int64_t offset;
  struct trial *t = &s->trial;
  if (aclrtSynchronizeStream(t->devices->at[t->device].stream) != ACL_SUCCESS)
    return "the stream failed";
  for (int i = 0; i <= POOL_TENSORS; i++) {
    struct guarded *g = i < POOL_TENSORS ? &t->memory[i] : &t->workspace;
    if (g->device == NULL) continue;
    if (guarded_fetch(g) != ACL_SUCCESS) return "memory could not be fetched";
    if (guarded_differs(g, false, &offset)) return "memory was changed";
  }
  return NULL;
}

static int names_of(const struct wrong *w, enum pool_operator op, const char **words) {
  if (w->place == AT_WORKSPACE) {
    words[0] = "workspace";
    words[1] = "workspaceSize";
    return 2;
  }
  words[0] = w->place == AT_EXECUTOR ? "executor"
             : w->place == AT_STREAM ? "stream"
                                     : bad_name(op, (int)w->place);
  return 1;
}

/* The flaw that is noticed first, and perhaps another that is noticed at the same time. */
struct expectation {
  const struct wrong *first, *also;
};

static const char *judge_run(struct stage *s, const struct run *r, const struct expectation *e,
                             bool repeatable, int *status, char *said, size_t room) {
  uint64_t size;
  const char *words[4];
  int count = names_of(e->first, r->call.op, words);
  if (e->also != NULL) count += names_of(e->also, r->call.op, words + count);
  aclOpExecutor *executor = prepare(&r->call, &size);
  if (repeatable) OK_OR_SAY(aclSetAclOpExecutorRepeatable(executor));
  *status = operator_calls[r->second].second(r->workspace, r->size,
                                             r->replaced ? r->executor : executor, r->stream);
  const char *text = aclGetRecentErrMsg();
  const char *wrong = judge_sentence(text, operator_calls[r->second].second_name, words, count);
  (void)snprintf(said, room, "%s", text == NULL ? "(no sentence)" : text);
  const bool live = aclDestroyAclOpExecutor(executor) == ACL_SUCCESS;
  (void)aclGetRecentErrMsg();
  if (*status != e->first->code) return "the code is wrong";
  if (live != (repeatable || r->replaced || e->first->step <= OWNER_STEP))
    return live ? "the executor is not spent" : "the executor is spent";
  return wrong != NULL ? wrong : judge_memory(s);
}

/* An overlap with memory that the other flaw has moved to another device is none. */
static bool is_undone(const struct wrong *w, const struct wrong *by) {
  return by->fault == ELSEWHERE && ((w->fault == ON_GRAD_OUT && by->place == AT_GRAD_OUT) ||
                                    (w->fault == ON_INDICES && by->place == AT_INDICES) ||
                                    (w->fault == ON_GRAD_IN && by->place == AT_GRAD_IN));
}

static void check_run(struct stage *s, const char *line, const struct wrong *a,
                      const struct wrong *b, bool repeatable) {
  char said[1024];
  int status;
  struct trial *t = &s->trial;
  struct run r = {.call = s->call,
                  .second = s->call.op,
                  .workspace = t->workspace.device,
                  .size = s->wanted,
                  .stream = t->devices->at[t->device].stream};
  struct expectation e = {.first = a};
  spoil(s, a, &r);
  if (b != NULL) spoil(s, b, &r);
  if (b != NULL && (b->step < a->step || is_undone(a, b))) e.first = b;
  if (b != NULL && b->step == a->step) e.also = b;
  const struct handle_counts before = count_handles();
  const char *wrong = judge_run(s, &r, &e, repeatable, &status, said, sizeof said);
  const struct handle_counts after = count_handles();
  if (wrong == NULL && !same_handles(&before, &after)) wrong = "a handle is left";
  calls[s->call.op]++;
  if (wrong != NULL)
    complain(&failed, "%s on device %d%s\n  %s%s%s\n  %s: %d, expected %d: %s", line, t->device,
             repeatable ? ", repeatable" : "", a->what, b == NULL ? "" : " and ",
             b == NULL ? "" : b->what, wrong, status, e.first->code, said);
}

/* --- the stage ---------------------------------------------------------------------------------
 */

#define GOOD(t, call)                                 \
  do {                                                \
    if (!(call)) fail_msg("%s: %s", #call, (t)->why); \
  } while (0)

static void run_right(struct trial *t) {
  GOOD(t, trial_launch(t));
  GOOD(t, trial_fetch(t));
  GOOD(t, trial_compare(t));
}

/* Memory of a device of another kind, to be freed with the first one found current again. */
static char *find_elsewhere(const struct trial *t) {
  for (int i = 0; i < t->devices->count; i++)
    if (device_is_cuda(i) != device_is_cuda(t->device)) {
      OK_OR_SAY(aclrtSetCurrentContext(t->devices->at[i].context));
      char *memory = device_memory(ELSEWHERE_BYTES);
      OK_OR_SAY(aclrtSetCurrentContext(t->devices->at[t->device].context));
      return memory;
    }
  return NULL;
}

static void open_stage(struct stage *s, int device) {
  struct trial *t = &s->trial;
  aclrtStream stream = t->devices->at[device].stream;
  GOOD(t, trial_move(t, device));
  run_right(t); /* and makes the workspace */
  GOOD(t, trial_reset(t));
  s->call = bad_base(&t->problem);
  for (int i = 0; i < POOL_TENSORS; i++) s->call.tensor[i].data = t->memory[i].device;
  s->spent = prepare(&s->call, &s->wanted);
  assert_int_equal(s->wanted, t->workspace.bytes);
  OK_OR_SAY(operator_calls[s->call.op].second(t->workspace.device, s->wanted, s->spent, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  GOOD(t, trial_reset(t));
  if (t->workspace.device != NULL) assert_int_equal(guarded_send(&t->workspace), ACL_SUCCESS);
  s->dead = prepare(&s->call, &s->wanted);
  OK_OR_SAY(aclDestroyAclOpExecutor(s->dead));
  s->corner = device_memory(CORNER);
  s->elsewhere = find_elsewhere(t);
  OK_OR_SAY(aclrtCreateStream(&s->dead_stream));
  OK_OR_SAY(aclrtDestroyStream(s->dead_stream));
  OK_OR_SAY(aclrtCreateEvent(&s->event));
  s->tensor = aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
}

static void close_stage(struct stage *s) {
  OK_OR_SAY(aclrtFree(s->corner));
  if (s->elsewhere != NULL) OK_OR_SAY(aclrtFree(s->elsewhere));
  OK_OR_SAY(aclrtDestroyEvent(s->event));
  OK_OR_SAY(aclDestroyTensor(s->tensor));
  run_right(&s->trial);
}

static void check_stage(struct stage *s, const char *line) {
  for (int i = 0; i < WRONGS; i++) {
    if (!applies(s, &wrongs[i])) continue;
    check_run(s, line, &wrongs[i], NULL, false);
    check_run(s, line, &wrongs[i], NULL, true);
    for (int k = i + 1; k < WRONGS; k++)
      if (wrongs[k].place != wrongs[i].place && applies(s, &wrongs[k]))
        check_run(s, line, &wrongs[i], &wrongs[k], false);
  }
}

static void wrong_second_phases_are_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    struct stage s = {0};
    const struct problem p = read_problem(lines[i]);
    GOOD(&s.trial, trial_open(&s.trial, &p, &devices));
    for (int device = 0; device < devices.count; device++) {
      open_stage(&s, device);
      check_stage(&s, lines[i]);
      close_stage(&s);
    }
    trial_close(&s.trial);
  }
  for (int i = 0; i < FIRST_OPERATORS; i++)
    print_message("%s: %d wrong second phases\n", operator_calls[i].second_name, calls[i]);
  assert_int_equal(failed, 0);
}

/* A run on a thread of its own, which has no context and cannot end the test by itself. */
struct lone_run {
  struct stage *stage;
  int status;
  char said[1024];
};

static void *run_without_context(void *state) {
  struct lone_run *r = state;
  const struct stage *s = r->stage;
  r->status =
      operator_calls[s->call.op].second(s->trial.workspace.device, s->wanted, s->dead, NULL);
  const char *text = aclGetRecentErrMsg();
  (void)snprintf(r->said, sizeof r->said, "%s", text == NULL ? "" : text);
  return NULL;
}

/* A NULL stream is the default one of the thread's context. */
static void the_default_stream_needs_a_context(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    struct stage s = {0};
    struct lone_run r = {.stage = &s};
    pthread_t thread;
    const struct problem p = read_problem(lines[i]);
    GOOD(&s.trial, trial_open(&s.trial, &p, &devices));
    open_stage(&s, 0);
    s.dead = prepare(&s.call, &s.wanted); /* dead after the run */
    assert_int_equal(pthread_create(&thread, NULL, run_without_context, &r), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.status, REFUSED_STREAM);
    assert_null(judge_sentence(r.said, operator_calls[s.call.op].second_name, NULL, 0));
    assert_null(judge_memory(&s));
    close_stage(&s);
    trial_close(&s.trial);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_second_phases_are_refused),
      cmocka_unit_test(the_default_stream_needs_a_context),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
