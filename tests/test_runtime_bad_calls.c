/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the runtime and of the aclnn base with every argument wrong in every way of its
 * kind, alone and in pairs, and from a thread without a context.  Each call must give its code and
 * one sentence, write no result and leave no handle.  The codes are those of the headers: a kind of
 * argument has them once, in the first table, and the second table says which kinds a function
 * takes. */
#include <pthread.h>

#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "bad_report.h"
#include "runtime_functions.h"

/* Some of the functions are deprecated and must be right all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* --- what arguments are made of ----------------------------------------------------------------
 */

enum { OUT_BYTES = 1024, BLOCK_BYTES = 256, OUT_BYTE = 0x5a, PARAMETERS_MAX = 10, WRONGS_MAX = 8 };

/* Things that have no number before the test has made them. */
enum thing {
  NOTHING,
  RESULT, /* OUT_BYTES that nobody may write */
  HOST,
  BLOCK,
  ODD_BLOCK,
  INVENTED, /* an address that is no handle */
  LIVE_STREAM,
  DEAD_STREAM,
  ALIEN_STREAM, /* of another context */
  DEFAULT_STREAM,
  LIVE_EVENT,
  DEAD_EVENT,
  LIVE_NOTIFY,
  DEAD_NOTIFY,
  LIVE_CONTEXT,
  DEAD_CONTEXT,
  DEFAULT_CONTEXT,
  LIVE_CONFIG,
  DEAD_CONFIG,
  LIVE_TENSOR,
  DEAD_TENSOR,
  LIVE_SCALAR,
  LIVE_INTS,
  LIVE_FLOATS,
  LIVE_BOOLS,
  LIVE_TENSORS,
  LIVE_SCALARS,
  LIVE_EXECUTOR,
  DEAD_EXECUTOR,
  LIVE_BUFFER,
  DEAD_BUFFER,
  BATCH_TO, /* arrays of one copy */
  BATCH_ROOM,
  BATCH_FROM,
  BATCH_SIZE,
  BATCH_PLACES,
  BATCH_FIRST,
  FAIL_INDEX,
  FUNCTION,
  DEVICES, /* how many there are */
  THINGS
};
static uintptr_t things[THINGS];

/* A value is a number, or a thing. */
struct value {
  bool is_thing;
  int64_t number;
};
#define N(value) \
  { false, (value) }
#define T(thing) \
  { true, (thing) }

/* --- the first table: kinds of arguments, a right value and the wrong ones ----------------------
 */

static const struct kind {
  const char *word;
  struct value right;
  struct {
    int code;
    struct value value;
  } wrongs[WRONGS_MAX]; /* up to the first code 0 */
} kinds[] = {
    {"any", N(0), {{0}}},
    {"result", T(RESULT), {{100000, T(NOTHING)}}},
    {"pointer", T(HOST), {{100000, T(NOTHING)}}},
    {"function", T(FUNCTION), {{100000, T(NOTHING)}}},
    {"listener", T(FUNCTION), {{107000, T(NOTHING)}}},
    {"stream",
     T(LIVE_STREAM),
     {{107017, T(DEAD_STREAM)},
      {107017, T(LIVE_EVENT)},
      {107017, T(LIVE_TENSOR)},
      {107017, T(INVENTED)},
      {107003, T(ALIEN_STREAM)}}},
    {"own_stream",
     T(LIVE_STREAM),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_STREAM)},
      {107017, T(LIVE_EVENT)},
      {107017, T(INVENTED)},
      {107017, T(DEFAULT_STREAM)},
      {107003, T(ALIEN_STREAM)}}},
    {"event",
     T(LIVE_EVENT),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_EVENT)},
      {107017, T(LIVE_STREAM)},
      {107017, T(LIVE_TENSOR)},
      {107017, T(INVENTED)}}},
    {"notify",
     T(LIVE_NOTIFY),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_NOTIFY)},
      {107017, T(LIVE_EVENT)},
      {107017, T(INVENTED)}}},
    {"context", /* to be made current */
     T(LIVE_CONTEXT),
     {{100000, T(NOTHING)},
      {107000, T(DEAD_CONTEXT)},
      {107000, T(LIVE_STREAM)},
      {107000, T(INVENTED)}}},
    {"own_context", /* to be destroyed */
     T(LIVE_CONTEXT),
     {{100000, T(NOTHING)},
      {107002, T(DEAD_CONTEXT)},
      {107002, T(DEFAULT_CONTEXT)},
      {107002, T(LIVE_STREAM)},
      {107002, T(INVENTED)}}},
    {"config",
     T(LIVE_CONFIG),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_CONFIG)},
      {107017, T(LIVE_STREAM)},
      {107017, T(INVENTED)}}},
    {"device",
     N(0),
     {{107001, N(-1)}, {107001, T(DEVICES)}, {107001, N(INT32_MAX)}, {107001, N(INT32_MIN)}}},
    /* enumerators from 0 to a last one */
    {"to_0", N(0), {{100000, N(-1)}, {100000, N(1)}, {100000, N(INT32_MAX)}}},
    {"to_1", N(1), {{100000, N(-1)}, {100000, N(2)}, {100000, N(INT32_MAX)}}},
    {"to_2", N(2), {{100000, N(-1)}, {100000, N(3)}, {100000, N(INT32_MIN)}}},
    {"to_3", N(3), {{100000, N(-1)}, {100000, N(4)}, {100000, N(INT32_MAX)}}},
    {"to_7", N(1), {{100000, N(-1)}, {100000, N(8)}, {100000, N(INT32_MIN)}}},
    {"attribute", N(601), {{207000, N(0)}, {207000, N(-1)}, {207000, N(602)}}},
    {"feature", N(1), {{100000, N(0)}, {100000, N(-1)}, {100000, N(99)}}},
    {"stream_attribute", N(1), {{100000, N(0)}, {100000, N(-1)}, {100000, N(6)}}},
    {"register_type", N(0), {{100000, N(-1)}, {100000, N(1)}, {100000, N(99)}}},
    {"record_flag", N(0), {{100000, N(2)}, {100000, N(UINT32_MAX)}}},
    {"reserved", N(0), {{100000, N(1)}, {100000, N(UINT32_MAX)}}},
    {"saturation", N(0), {{107000, N(-1)}, {107000, N(3)}, {107000, N(INT32_MAX)}}},
    {"event_flag",
     N(1),
     {{107000, N(0)}, {107000, N(0x80)}, {107000, N(0x21)}, {107000, N(0x18)}, {207000, N(0x40)}}},
    {"to_1_of_numbers", N(0), {{107000, N(2)}, {107000, N(-1)}}},
    {"to_3_of_numbers", N(0), {{107000, N(4)}, {107000, N(-1)}}},
    {"zero", N(0), {{107000, N(1)}, {107000, N(-1)}}},
    {"level", N(0), {{107000, N(-1)}, {107000, N(4)}, {107000, N(INT64_MIN)}}}, /* of determinism */
    /* numbers */
    {"size", N(64), {{100000, N(0)}}},
    {"memory_size", N(64), {{100000, N(0)}, {100000, N(-1)}, {100000, N(-64)}}},
    {"config_size", N(4), {{100000, N(0)}, {100000, N(8)}, {100000, N(-1)}}},
    {"ms", N(1), {{107000, N(0)}, {107000, N(-2)}, {107000, N(INT32_MIN)}}},
    {"ms_or_0", N(1), {{107000, N(-2)}, {107000, N(INT32_MIN)}}},
    {"report_ms", N(1), {{100000, N(0)}, {100000, N(-2)}, {100000, N(INT32_MIN)}}},
    {"seconds", N(1), {{107000, N(-1)}, {107000, N(INT32_MIN)}}},
    /* memory */
    {"freed", T(INVENTED), {{100000, T(NOTHING)}, {107000, T(INVENTED)}, {107000, T(ODD_BLOCK)}}},
    {"unregistered", T(INVENTED), {{100000, T(NOTHING)}, {507911, T(INVENTED)}}},
    {"room", N(64), {{107000, N(0)}, {107000, N(63)}}},       /* of a copy of 64 bytes */
    {"pitch", N(64), {{100000, N(0)}, {100000, N(63)}}},      /* of rows of 64 bytes */
    {"words_room", N(64), {{100000, N(0)}, {100000, N(63)}}}, /* of 16 words */
    {"bytes", N(64), {{107000, N(65)}, {107000, N(-1)}}},     /* of a room of 64 */
    {"words", N(16), {{100000, N(17)}, {100000, N(-1)}}},     /* likewise */
    {"count", N(64), {{0}}},
    {"rows", N(1), {{0}}},
    {"sixteen", N(16), {{0}}},
    {"block", T(BLOCK), {{100000, T(NOTHING)}}},
    {"word_block", T(BLOCK), {{100000, T(NOTHING)}, {100000, T(ODD_BLOCK)}}},
    {"value_block", T(BLOCK), {{100000, T(NOTHING)}, {107008, T(ODD_BLOCK)}}},
    {"kind", N(1), {{100000, N(-1)}, {100000, N(6)}, {100000, N(INT32_MAX)}}},
    {"async_kind", N(1), {{100000, N(-1)}, {100000, N(6)}, {207000, N(0)}}},
    {"pitch_kind", N(1), {{100000, N(-1)}, {100000, N(0)}, {100000, N(5)}, {100000, N(6)}}},
    {"buffer",
     T(LIVE_BUFFER),
     {{100000, T(NOTHING)},
      {100000, T(DEAD_BUFFER)},
      {100000, T(LIVE_TENSOR)},
      {100000, T(INVENTED)}}},
    {"batch_to", T(BATCH_TO), {{100000, T(NOTHING)}}},
    {"batch_room", T(BATCH_ROOM), {{100000, T(NOTHING)}}},
    {"batch_from", T(BATCH_FROM), {{100000, T(NOTHING)}}},
    {"batch_size", T(BATCH_SIZE), {{100000, T(NOTHING)}}},
    {"batch_places", T(BATCH_PLACES), {{100000, T(NOTHING)}}},
    {"batch_first", T(BATCH_FIRST), {{100000, T(NOTHING)}}},
    {"fail_index", T(FAIL_INDEX), {{0}}}, /* may be NULL, and is written on failure, too */
    /* the aclnn base */
    {"nn_result", T(RESULT), {{161001, T(NOTHING)}}},
    {"tensor",
     T(LIVE_TENSOR),
     {{161001, T(NOTHING)},
      {161002, T(DEAD_TENSOR)},
      {161002, T(LIVE_INTS)},
      {161002, T(INVENTED)}}},
    {"own_tensor",
     T(LIVE_TENSOR),
     {{161002, T(DEAD_TENSOR)}, {161002, T(LIVE_INTS)}, {161002, T(INVENTED)}}},
    {"ints", T(LIVE_INTS), {{161001, T(NOTHING)}, {161002, T(LIVE_FLOATS)}, {161002, T(INVENTED)}}},
    {"floats",
     T(LIVE_FLOATS),
     {{161001, T(NOTHING)}, {161002, T(LIVE_BOOLS)}, {161002, T(INVENTED)}}},
    {"bools", T(LIVE_BOOLS), {{161001, T(NOTHING)}, {161002, T(LIVE_INTS)}, {161002, T(INVENTED)}}},
    {"tensors",
     T(LIVE_TENSORS),
     {{161001, T(NOTHING)}, {161002, T(LIVE_SCALARS)}, {161002, T(INVENTED)}}},
    {"scalars",
     T(LIVE_SCALARS),
     {{161001, T(NOTHING)}, {161002, T(LIVE_TENSORS)}, {161002, T(INVENTED)}}},
    {"own_array", T(LIVE_INTS), {{161002, T(LIVE_EVENT)}, {161002, T(INVENTED)}}},
    {"executor",
     T(LIVE_EXECUTOR),
     {{561103, T(NOTHING)},
      {561000, T(DEAD_EXECUTOR)},
      {561000, T(LIVE_TENSOR)},
      {561000, T(INVENTED)}}},
    {"operand",
     T(LIVE_TENSOR),
     {{561103, T(NOTHING)}, {161002, T(DEAD_TENSOR)}, {161002, T(INVENTED)}}},
    {"operands", T(LIVE_TENSORS), {{561103, T(NOTHING)}, {161002, T(INVENTED)}}},
    {"member", N(0), {{161002, N(1)}, {161002, N(-1)}}},
    {"nn_name", T(HOST), {{161001, T(NOTHING)}}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* --- the second table is in runtime_functions.h -------------------------------------------------
 */

#define DEFINE_CALL(name, arguments, parameters, context) \
  static int call_##name(const uintptr_t *a) {            \
    (void)a;                                              \
    return name arguments;                                \
  }
FUNCTIONS(DEFINE_CALL)

static const struct function {
  const char *name;
  int (*call)(const uintptr_t *a);
  const char *parameters;
  bool needs_context;
} functions[] = {
#define ROW(name, arguments, parameters, context) {#name, call_##name, parameters, context},
    FUNCTIONS(ROW)};
enum { FUNCTIONS_COUNT = sizeof functions / sizeof functions[0] };

/* --- a call ------------------------------------------------------------------------------------
 */

struct parameter {
  char name[32];
  const struct kind *kind;
};

static const struct kind *find_kind(const char *word) {
  for (int i = 0; i < KINDS; i++)
    if (strcmp(kinds[i].word, word) == 0) return &kinds[i];
  fail_msg("no kind '%s'", word);
  return NULL;
}

/* "stream:stream status:result" */
static int read_parameters(const char *text, struct parameter out[PARAMETERS_MAX]) {
  int count = 0, length;
  char word[32];
  for (; sscanf(text, " %31[^:]:%31s%n", out[count].name, word, &length) == 2; text += length)
    out[count++].kind = find_kind(word);
  return count;
}

static uintptr_t read_value(const struct value *v) {
  return v->is_thing ? things[v->number] : (uintptr_t)v->number;
}

static int calls, failed;
static unsigned char results[OUT_BYTES];

/* One wrong argument. */
struct slip {
  int parameter, code;
  const struct value *value;
};

static const char *judge(const struct function *f, const char *text, int status,
                         const struct parameter *p, const struct slip *a, const struct slip *b) {
  const char *words[2] = {p[a->parameter].name, b == NULL ? NULL : p[b->parameter].name};
  if (status != a->code && (b == NULL || status != b->code)) return "the code is wrong";
  for (int i = 0; i < OUT_BYTES; i++)
    if (results[i] != OUT_BYTE) return "a result was written";
  return judge_sentence(text, f->name, words, b == NULL ? 1 : 2);
}

static void check_call(const struct function *f, const struct parameter *p, int count,
                       const struct slip *a, const struct slip *b) {
  uintptr_t arguments[PARAMETERS_MAX] = {0};
  for (int i = 0; i < count; i++) arguments[i] = read_value(&p[i].kind->right);
  arguments[a->parameter] = read_value(a->value);
  if (b != NULL) arguments[b->parameter] = read_value(b->value);
  memset(results, OUT_BYTE, sizeof results);
  const struct handle_counts before = count_handles();
  const int status = f->call(arguments);
  const char *text = aclGetRecentErrMsg();
  const struct handle_counts after = count_handles();
  const char *wrong = judge(f, text, status, p, a, b);
  if (wrong == NULL && !same_handles(&before, &after)) wrong = "a handle is left or gone";
  calls++;
  if (wrong != NULL)
    complain(&failed, "%s: %s is %#llx%s%s\n  %s: %d, expected %d%s: %s", f->name,
             p[a->parameter].name, (unsigned long long)arguments[a->parameter],
             b == NULL ? "" : " and wrong ", b == NULL ? "" : p[b->parameter].name, wrong, status,
             a->code, b == NULL ? "" : " or the other's", text == NULL ? "(no sentence)" : text);
}

/* All slips of a function; how many. */
static int list_slips(const struct parameter *p, int count, struct slip *slips) {
  int found = 0;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < WRONGS_MAX && p[i].kind->wrongs[k].code != 0; k++)
      slips[found++] = (struct slip){i, p[i].kind->wrongs[k].code, &p[i].kind->wrongs[k].value};
  return found;
}

static void every_wrong_argument_is_refused(void **state) {
  (void)state;
  for (int i = 0; i < FUNCTIONS_COUNT; i++) {
    struct parameter p[PARAMETERS_MAX];
    struct slip slips[PARAMETERS_MAX * WRONGS_MAX];
    const int count = read_parameters(functions[i].parameters, p);
    const int found = list_slips(p, count, slips);
    assert_true(found > 0 || functions[i].needs_context);
    for (int k = 0; k < found; k++) {
      check_call(&functions[i], p, count, &slips[k], NULL);
      for (int l = k + 1; l < found; l++)
        if (slips[l].parameter != slips[k].parameter)
          check_call(&functions[i], p, count, &slips[k], &slips[l]);
    }
  }
  print_message("%d wrong calls of %d functions\n", calls, FUNCTIONS_COUNT);
  assert_int_equal(failed, 0);
}

/* --- without a context -------------------------------------------------------------------------
 */

/* What a thread without a context gets for right arguments. */
struct lone_call {
  int status;
  char said[1024];
};

static void *call_without_context(void *state) {
  struct lone_call *found = state;
  for (int i = 0; i < FUNCTIONS_COUNT; i++) {
    struct parameter p[PARAMETERS_MAX];
    uintptr_t arguments[PARAMETERS_MAX] = {0};
    if (!functions[i].needs_context) continue;
    const int count = read_parameters(functions[i].parameters, p);
    for (int k = 0; k < count; k++) arguments[k] = read_value(&p[k].kind->right);
    found[i].status = functions[i].call(arguments);
    const char *text = aclGetRecentErrMsg();
    (void)snprintf(found[i].said, sizeof found[i].said, "%s", text == NULL ? "" : text);
  }
  return NULL;
}

static void a_thread_without_a_context_is_told_so(void **state) {
  (void)state;
  static struct lone_call found[FUNCTIONS_COUNT];
  pthread_t thread;
  failed = 0;
  memset(results, OUT_BYTE, sizeof results);
  assert_int_equal(pthread_create(&thread, NULL, call_without_context, found), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  for (int i = 0; i < FUNCTIONS_COUNT; i++)
    if (functions[i].needs_context &&
        (found[i].status != ACL_ERROR_RT_CONTEXT_NULL ||
         judge_sentence(found[i].said, functions[i].name, NULL, 0) != NULL))
      complain(&failed, "%s without a context: %d, expected 107002: %s", functions[i].name,
               found[i].status, found[i].said);
  for (int i = 0; i < OUT_BYTES; i++) assert_int_equal(results[i], OUT_BYTE);
  assert_int_equal(failed, 0);
}

static const void *thing(enum thing thing) { return (const void *)things[thing]; }

/* --- functions that return no code -------------------------------------------------------------
 */

static void expect_sentence(const char *api) {
  const char *wrong = judge_sentence(aclGetRecentErrMsg(), api, NULL, 0);
  if (wrong != NULL) fail_msg("%s: %s", api, wrong);
}

static void wrong_descriptions_make_nothing(void **state) {
  (void)state;
  static const int64_t dims[26] = {1};
  float one = 1;
  const struct handle_counts before = count_handles();
  assert_null(aclCreateTensor(NULL, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, NULL));
  expect_sentence("aclCreateTensor");
  assert_null(aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 1, NULL));
  expect_sentence("aclCreateTensor");
  assert_null(aclCreateTensor(dims, 26, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, NULL));
  expect_sentence("aclCreateTensor");
  assert_null(aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, UINT64_MAX, NULL));
  expect_sentence("aclCreateTensor");
  assert_null(aclCreateScalar(NULL, ACL_FLOAT));
  expect_sentence("aclCreateScalar");
  assert_null(aclCreateScalar(&one, ACL_STRING));
  expect_sentence("aclCreateScalar");
  assert_null(aclCreateScalar(&one, (aclDataType)1000));
  expect_sentence("aclCreateScalar");
  assert_null(aclCreateIntArray(dims, UINT64_MAX));
  expect_sentence("aclCreateIntArray");
  assert_null(aclCreateFloatArray(&one, UINT64_MAX));
  expect_sentence("aclCreateFloatArray");
  const struct handle_counts after = count_handles();
  assert_true(same_handles(&before, &after));
}

static void wrong_infos_and_buffers_give_their_nothing(void **state) {
  (void)state;
  static const enum thing wrong[] = {NOTHING, DEAD_BUFFER, LIVE_TENSOR, INVENTED};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    const aclDataBuffer *buffer = thing(wrong[i]);
    assert_null(aclGetDataBufferAddr(buffer));
    assert_int_equal(aclGetDataBufferSize(buffer), 0);
    assert_int_equal(aclGetDataBufferSizeV2(buffer), 0);
  }
  (void)aclGetRecentErrMsg();
  assert_int_equal(aclrtGetTaskIdFromExceptionInfo(NULL), UINT32_MAX);
  assert_int_equal(aclrtGetStreamIdFromExceptionInfo(NULL), UINT32_MAX);
  assert_int_equal(aclrtGetThreadIdFromExceptionInfo(NULL), UINT32_MAX);
  assert_int_equal(aclrtGetDeviceIdFromExceptionInfo(NULL), UINT32_MAX);
  assert_int_equal(aclrtGetErrorCodeFromExceptionInfo(NULL), UINT32_MAX);
  aclAppLog(ACL_ERROR, NULL, NULL, 0, NULL);
}

/* --- the things --------------------------------------------------------------------------------
 */

static void do_nothing(void *data) { (void)data; }

static uintptr_t keep(enum thing thing, const void *handle) {
  assert_non_null(handle);
  return things[thing] = (uintptr_t)handle;
}

static void make_contexts(void) {
  aclrtContext context;
  aclrtStream stream;
  OK_OR_SAY(aclrtGetCurrentContext(&context));
  keep(DEFAULT_CONTEXT, context);
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&stream));
  keep(DEFAULT_STREAM, stream);
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  keep(DEAD_CONTEXT, context);
  OK_OR_SAY(aclrtDestroyContext(context));
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  keep(LIVE_CONTEXT, context);
  OK_OR_SAY(aclrtCreateStream(&stream));
  keep(ALIEN_STREAM, stream);
  OK_OR_SAY(aclrtSetCurrentContext((aclrtContext)things[DEFAULT_CONTEXT]));
}

static void make_streams(void) {
  aclrtStream stream;
  aclrtEvent event;
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateStream(&stream));
  keep(DEAD_STREAM, stream);
  OK_OR_SAY(aclrtDestroyStream(stream));
  OK_OR_SAY(aclrtCreateStream(&stream));
  keep(LIVE_STREAM, stream);
  OK_OR_SAY(aclrtCreateEvent(&event));
  keep(DEAD_EVENT, event);
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclrtCreateEvent(&event));
  keep(LIVE_EVENT, event);
  OK_OR_SAY(aclrtRecordEvent(event, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  keep(DEAD_NOTIFY, notify);
  OK_OR_SAY(aclrtDestroyNotify(notify));
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  keep(LIVE_NOTIFY, notify);
  keep(DEAD_CONFIG, aclrtCreateStreamConfigHandle());
  keep(LIVE_CONFIG, aclrtCreateStreamConfigHandle());
  OK_OR_SAY(aclrtDestroyStreamConfigHandle((aclrtStreamConfigHandle *)things[DEAD_CONFIG]));
}

static aclTensor *make_tensor(void) {
  static const int64_t dims[] = {1, 2, 2, 2};
  return aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 4, NULL);
}

static aclOpExecutor *make_executor(void) {
  uint64_t size;
  aclOpExecutor *executor;
  aclTensor *tensor = (aclTensor *)things[LIVE_TENSOR];
  OK_OR_SAY(
      aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(tensor, tensor, tensor, &size, &executor));
  return executor;
}

static void make_values(void) {
  float one = 1;
  keep(DEAD_TENSOR, make_tensor());
  OK_OR_SAY(aclDestroyTensor(thing(DEAD_TENSOR)));
  keep(LIVE_TENSOR, make_tensor());
  keep(LIVE_SCALAR, aclCreateScalar(&one, ACL_FLOAT));
  keep(LIVE_INTS, aclCreateIntArray(NULL, 0));
  keep(LIVE_FLOATS, aclCreateFloatArray(NULL, 0));
  keep(LIVE_BOOLS, aclCreateBoolArray(NULL, 0));
  keep(LIVE_TENSORS, aclCreateTensorList((const aclTensor *[]){make_tensor()}, 1));
  keep(LIVE_SCALARS, aclCreateScalarList(NULL, 0));
  keep(DEAD_BUFFER, aclCreateDataBuffer(NULL, 0));
  OK_OR_SAY(aclDestroyDataBuffer(thing(DEAD_BUFFER)));
  keep(LIVE_BUFFER, aclCreateDataBuffer(NULL, 0));
  keep(DEAD_EXECUTOR, make_executor());
  keep(LIVE_EXECUTOR, make_executor());
  OK_OR_SAY(aclDestroyAclOpExecutor((aclOpExecutor *)things[DEAD_EXECUTOR]));
}

/* One copy of a batch, and where it goes. */
static void make_batch(void) {
  static void *to, *from;
  static size_t room = 64, size = 64, first = 0, fail_index;
  static aclrtMemcpyBatchAttr places = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                        .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
  to = (void *)things[BLOCK];
  from = (void *)things[HOST];
  keep(BATCH_TO, &to);
  keep(BATCH_ROOM, &room);
  keep(BATCH_FROM, &from);
  keep(BATCH_SIZE, &size);
  keep(BATCH_PLACES, &places);
  keep(BATCH_FIRST, &first);
  keep(FAIL_INDEX, &fail_index);
}

static int set_up(void **state) {
  static char host[BLOCK_BYTES] = "runtime";
  static int64_t no_handle;
  uint32_t count;
  if (set_up_device(state) != 0 || aclrtGetDeviceCount(&count) != ACL_SUCCESS) return 1;
  things[RESULT] = (uintptr_t)results;
  things[HOST] = (uintptr_t)host;
  things[INVENTED] = (uintptr_t)&no_handle;
  things[FUNCTION] = (uintptr_t)do_nothing;
  things[DEVICES] = count;
  things[BLOCK] = (uintptr_t)device_memory(BLOCK_BYTES);
  things[ODD_BLOCK] = things[BLOCK] + 1;
  make_contexts();
  make_streams();
  make_values();
  make_batch();
  return 0;
}

static int tear_down(void **state) {
  OK_OR_SAY(aclDestroyAclOpExecutor((aclOpExecutor *)things[LIVE_EXECUTOR]));
  OK_OR_SAY(aclDestroyDataBuffer(thing(LIVE_BUFFER)));
  OK_OR_SAY(aclDestroyTensor(thing(LIVE_TENSOR)));
  OK_OR_SAY(aclDestroyScalar(thing(LIVE_SCALAR)));
  OK_OR_SAY(aclDestroyIntArray(thing(LIVE_INTS)));
  OK_OR_SAY(aclDestroyFloatArray(thing(LIVE_FLOATS)));
  OK_OR_SAY(aclDestroyBoolArray(thing(LIVE_BOOLS)));
  OK_OR_SAY(aclDestroyTensorList(thing(LIVE_TENSORS)));
  OK_OR_SAY(aclDestroyScalarList(thing(LIVE_SCALARS)));
  OK_OR_SAY(aclrtDestroyStreamConfigHandle((aclrtStreamConfigHandle *)things[LIVE_CONFIG]));
  OK_OR_SAY(aclrtDestroyNotify((aclrtNotify)things[LIVE_NOTIFY]));
  OK_OR_SAY(aclrtDestroyEvent((aclrtEvent)things[LIVE_EVENT]));
  OK_OR_SAY(aclrtDestroyStream((aclrtStream)things[LIVE_STREAM]));
  OK_OR_SAY(aclrtDestroyContext((aclrtContext)things[LIVE_CONTEXT])); /* with its stream */
  OK_OR_SAY(aclrtFree((void *)things[BLOCK]));
  return tear_down_device(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_wrong_argument_is_refused),
      cmocka_unit_test(a_thread_without_a_context_is_told_so),
      cmocka_unit_test(wrong_descriptions_make_nothing),
      cmocka_unit_test(wrong_infos_and_buffers_give_their_nothing),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
