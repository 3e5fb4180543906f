/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: stale, foreign and invented ones find nothing; allocations may fail anywhere. */
#include "expect.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>

#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "faults.h"
#include "core/handle.h"

struct thing {
  struct pg_object object;
  int ends; /* how often destroy ran */
};

static void end(struct pg_object *self) { ((struct thing *)self)->ends++; }

static void init(struct thing *thing) {
  atomic_init(&thing->object.refs, 1);
  thing->object.destroy = end;
  thing->ends = 0;
}

static void *open_thing(struct thing *thing, enum pg_kind kind) {
  init(thing);
  void *handle = pg_handle_open(kind, &thing->object);
  assert_non_null(handle);
  return handle;
}

static void a_live_handle_finds_its_object(void **state) {
  (void)state;
  struct thing thing;
  void *handle = open_thing(&thing, PG_EVENT);
  assert_true(pg_is_live(handle, PG_EVENT));
  assert_ptr_equal(pg_acquire(handle, PG_EVENT), &thing);
  pg_release(&thing.object);
  assert_string_equal(pg_handle_what(handle), "an event");
  assert_int_equal(thing.ends, 0);
  pg_release(pg_handle_close(handle, PG_EVENT));
  assert_int_equal(thing.ends, 1);
}

static void a_closed_handle_finds_nothing(void **state) {
  (void)state;
  struct thing thing;
  void *handle = open_thing(&thing, PG_EVENT);
  pg_release(pg_handle_close(handle, PG_EVENT));
  assert_false(pg_is_live(handle, PG_EVENT));
  assert_null(pg_acquire(handle, PG_EVENT));
  assert_null(pg_handle_close(handle, PG_EVENT));
  assert_string_equal(pg_handle_what(handle), "a destroyed event");
  assert_int_equal(thing.ends, 1);
}

static void an_object_outlives_its_handle_while_in_use(void **state) {
  (void)state;
  struct thing thing;
  void *handle = open_thing(&thing, PG_EVENT);
  struct thing *used = pg_acquire(handle, PG_EVENT);
  pg_release(pg_handle_close(handle, PG_EVENT));
  assert_int_equal(thing.ends, 0);
  pg_release(&used->object);
  assert_int_equal(thing.ends, 1);
}

static void a_reused_slot_does_not_revive_old_handles(void **state) {
  (void)state;
  struct thing first, second;
  void *old = open_thing(&first, PG_EVENT);
  pg_release(pg_handle_close(old, PG_EVENT));
  const uintptr_t slot = (uintptr_t)old & 0xffffff;
  void *handle = NULL;
  for (int i = 0; i < 100000 && ((uintptr_t)handle & 0xffffff) != slot; i++) {
    if (handle != NULL) pg_release(pg_handle_close(handle, PG_EVENT));
    handle = open_thing(&second, PG_EVENT);
  }
  assert_int_equal((uintptr_t)handle & 0xffffff, slot);
  assert_ptr_not_equal(handle, old);
  assert_null(pg_acquire(old, PG_EVENT));
  assert_null(pg_handle_close(old, PG_EVENT));
  assert_true(pg_is_live(handle, PG_EVENT));
  pg_release(pg_handle_close(handle, PG_EVENT));
}

/* The first of its process to use this kind: one slot serves all the pairs. */
static void a_handle_that_was_closed_never_comes_back(void **state) {
  (void)state;
#if defined(__SANITIZE_THREAD__) || defined(EMULATED)
  SKIP("16 million handles take minutes here; the plain build makes them");
#endif
  enum { GENERATIONS = 1 << 24 };
  struct thing first, other;
  void *old = open_thing(&first, PG_SCALAR_LIST);
  pg_release(pg_handle_close(old, PG_SCALAR_LIST));
  for (int i = 0; i < GENERATIONS; i++) {
    init(&other);
    void *handle = pg_handle_open(PG_SCALAR_LIST, &other.object);
    if (handle == old || handle == NULL) fail_msg("after %d others: %p", i, handle);
    pg_release(pg_handle_close(handle, PG_SCALAR_LIST));
  }
  assert_null(pg_acquire(old, PG_SCALAR_LIST));
  void *handle = open_thing(&other, PG_SCALAR_LIST); /* in another slot */
  assert_int_not_equal((uintptr_t)handle & 0xffffff, (uintptr_t)old & 0xffffff);
  assert_ptr_equal(pg_handle_next(PG_SCALAR_LIST, NULL), handle);
  assert_null(pg_handle_next(PG_SCALAR_LIST, handle));
  pg_release(pg_handle_close(handle, PG_SCALAR_LIST));
}

/* Going through the handles of a kind looks at its own slots, however many others there are. */
static void kinds_do_not_share_slots(void **state) {
  (void)state;
  enum { MANY = 5000 };
  static struct thing tensors[MANY];
  static void *handles[MANY];
  struct thing one;
  void *before = open_thing(&one, PG_FLOAT_ARRAY);
  pg_release(pg_handle_close(before, PG_FLOAT_ARRAY));
  for (int i = 0; i < MANY; i++) handles[i] = open_thing(&tensors[i], PG_TENSOR);
  void *after = open_thing(&one, PG_FLOAT_ARRAY);
  assert_int_equal((uintptr_t)after & 0xffffff, (uintptr_t)before & 0xffffff);
  pg_release(pg_handle_close(after, PG_FLOAT_ARRAY));
  for (int i = 0; i < MANY; i++) pg_release(pg_handle_close(handles[i], PG_TENSOR));
}

static void millions_of_uses_leave_the_count_right(void **state) {
  (void)state;
  enum { USES = 1 << 20 };
  struct thing thing;
  void *handle = open_thing(&thing, PG_EVENT);
  for (int held = 0; held < 5; held++) { /* each round ends with one use more that goes on */
    for (int i = 0; i < USES; i++) {
      assert_ptr_equal(pg_acquire(handle, PG_EVENT), &thing);
      pg_release(&thing.object);
    }
    assert_ptr_equal(pg_acquire(handle, PG_EVENT), &thing);
  }
  pg_release(pg_handle_close(handle, PG_EVENT));
  for (int held = 0; held < 5; held++) {
    assert_int_equal(thing.ends, 0);
    pg_release(&thing.object);
  }
  assert_int_equal(thing.ends, 1);
}

/* What threads look up while another opens and closes it. */
static _Atomic(void *) shared;
static atomic_bool finished;
static atomic_int alive, seen;

static void end_and_free(struct pg_object *self) {
  atomic_fetch_sub(&alive, 1);
  free(self);
}

static void *look_up(void *unused) {
  while (!atomic_load(&finished)) {
    struct thing *thing = pg_acquire(atomic_load(&shared), PG_EVENT);
    if (thing == NULL) continue;
    atomic_fetch_add(&seen, thing->ends == 7);
    pg_release(&thing->object);
  }
  return unused;
}

static void a_use_and_a_close_may_race(void **state) {
  (void)state;
  enum { THREADS = 3, ROUNDS = 20000, PATIENCE = 100 * ROUNDS };
  pthread_t threads[THREADS];
  atomic_store(&finished, false);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, look_up, NULL), 0);
  /* A busy machine may let nobody look for a while. */
  for (int rounds = 0; rounds < ROUNDS || (rounds < PATIENCE && atomic_load(&seen) == 0);
       rounds++) {
    struct thing *thing = malloc(sizeof *thing);
    assert_non_null(thing);
    init(thing);
    thing->object.destroy = end_and_free;
    thing->ends = 7;
    atomic_fetch_add(&alive, 1);
    void *handle = pg_handle_open(PG_EVENT, &thing->object);
    atomic_store(&shared, handle);
    if (rounds % 8 == 0) sched_yield();
    pg_release(pg_handle_close(handle, PG_EVENT));
  }
  atomic_store(&finished, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_true(atomic_load(&seen) > 0);
  assert_int_equal(atomic_load(&alive), 0);
}

static void another_kind_finds_nothing(void **state) {
  (void)state;
  struct thing thing;
  void *handle = open_thing(&thing, PG_STREAM);
  for (int kind = 0; kind < PG_KIND_COUNT; kind++) {
    if (kind == PG_STREAM) continue;
    assert_false(pg_is_live(handle, (enum pg_kind)kind));
    assert_null(pg_acquire(handle, (enum pg_kind)kind));
    assert_null(pg_handle_close(handle, (enum pg_kind)kind));
  }
  /* The same slot and generation under another kind's tag is no handle either. */
  assert_false(pg_is_live((void *)((uintptr_t)handle + ((uintptr_t)1 << 48)), PG_EVENT));
  pg_release(pg_handle_close(handle, PG_STREAM));
}

static void expect_nothing(const void *garbage) {
  for (int kind = 0; kind < PG_KIND_COUNT; kind++) {
    assert_false(pg_is_live(garbage, (enum pg_kind)kind));
    assert_null(pg_acquire(garbage, (enum pg_kind)kind));
    assert_null(pg_handle_close(garbage, (enum pg_kind)kind));
  }
  assert_non_null(pg_handle_what(garbage));
}

static void garbage_finds_nothing(void **state) {
  (void)state;
  int on_the_stack = 0;
  struct thing thing;
  void *live = open_thing(&thing, PG_TENSOR);
  expect_nothing(NULL);
  expect_nothing((void *)1);
  expect_nothing((void *)UINTPTR_MAX);
  expect_nothing(&on_the_stack);
  expect_nothing(&thing);
  expect_nothing((void *)((uintptr_t)live + 1));
  expect_nothing((void *)((uintptr_t)live + (1 << 24)));
  expect_nothing((void *)((uintptr_t)live & ~(uintptr_t)0xffffff));
  expect_nothing((void *)((uintptr_t)live | 0xffffff));
  uint64_t seed = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    expect_nothing((void *)(uintptr_t)seed);
    expect_nothing((void *)(((uintptr_t)live & ((uintptr_t)0xffff << 48)) | (seed >> 16 & ~1023u)));
  }
  assert_string_equal(pg_handle_what(NULL), "NULL");
  assert_string_equal(pg_handle_what(&on_the_stack), "not a handle");
  pg_release(pg_handle_close(live, PG_TENSOR));
}

static void iteration_visits_every_live_handle_of_the_kind_once(void **state) {
  (void)state;
  enum { COUNT = 3000 }; /* several chunks */
  static struct thing things[COUNT], others[COUNT];
  static void *handles[COUNT], *other_handles[COUNT];
  for (int i = 0; i < COUNT; i++) {
    handles[i] = open_thing(&things[i], PG_NOTIFY);
    other_handles[i] = open_thing(&others[i], PG_EVENT);
  }
  for (int i = 0; i < COUNT; i += 3) pg_release(pg_handle_close(handles[i], PG_NOTIFY));
  assert_int_equal(pg_handle_count(PG_NOTIFY), COUNT - COUNT / 3);
  int visited = 0;
  for (void *h = pg_handle_next(PG_NOTIFY, NULL); h != NULL; h = pg_handle_next(PG_NOTIFY, h)) {
    struct thing *found = pg_acquire(h, PG_NOTIFY);
    assert_non_null(found);
    assert_int_equal(found->ends, 0);
    found->ends = -1; /* a second visit would see it */
    pg_release(&found->object);
    visited++;
  }
  assert_int_equal(visited, COUNT - COUNT / 3);
  for (int i = 0; i < COUNT; i++) {
    pg_release(pg_handle_close(handles[i], PG_NOTIFY));
    pg_release(pg_handle_close(other_handles[i], PG_EVENT));
  }
  assert_int_equal(pg_handle_count(PG_NOTIFY), 0);
  assert_null(pg_handle_next(PG_NOTIFY, NULL));
}

/* Zero growth under sanitizers, whose own heap this does not count; they look for leaks. */
static size_t heap_bytes(void) {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void one_round(void) {
  aclrtEvent event;
  aclTensor *tensor =
      aclCreateTensor((const int64_t[]){2}, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
  aclIntArray *array = aclCreateIntArray((const int64_t[]){1}, 1);
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtRecordEvent(event, NULL));
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclDestroyIntArray(array));
  OK_OR_SAY(aclDestroyTensor(tensor));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
}

static void ten_thousand_rounds_do_not_grow(void **state) {
  (void)state;
  for (int i = 0; i < 100; i++) one_round();
  const size_t before = heap_bytes();
  for (int i = 0; i < 10000; i++) one_round();
  BETWEEN(heap_bytes(), 0, before + 16384);
  assert_int_equal(pg_handle_count(PG_TENSOR), 0);
  assert_int_equal(pg_handle_count(PG_EVENT), 0);
}

/* From here on: each attempt makes one call with its n-th allocation failing and cleans up. */
static aclError limited(int n, aclError (*call)(void **out), aclError (*undo)(void *)) {
  void *made = NULL;
  faults_arm(n, FAULT_ONCE);
  const aclError status = call(&made);
  faults_disarm();
  if (status == ACL_SUCCESS)
    OK_OR_SAY(undo(made));
  else
    assert_null(made);
  return status;
}

static aclError make_tensor(void **out) {
  *out = aclCreateTensor((const int64_t[]){2}, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
  return *out == NULL ? -1 : 0;
}
static aclError end_tensor(void *made) { return aclDestroyTensor(made); }

static aclError make_ints(void **out) {
  return (*out = aclCreateIntArray((const int64_t[]){1}, 1)) == NULL ? -1 : 0;
}
static aclError end_ints(void *made) { return aclDestroyIntArray(made); }

static aclError make_scalar(void **out) {
  return (*out = aclCreateScalar(&(float){1}, ACL_FLOAT)) == NULL ? -1 : 0;
}
static aclError end_scalar(void *made) { return aclDestroyScalar(made); }

static aclError make_list(void **out) {
  return (*out = aclCreateTensorList(&(const aclTensor *){NULL}, 1)) == NULL ? -1 : 0;
}
static aclError end_list(void *made) { return aclDestroyTensorList(made); }

static aclError make_buffer(void **out) {
  return (*out = aclCreateDataBuffer(NULL, 0)) == NULL ? -1 : 0;
}
static aclError end_buffer(void *made) { return aclDestroyDataBuffer(made); }

static aclError make_config(void **out) {
  return (*out = aclrtCreateStreamConfigHandle()) == NULL ? -1 : 0;
}
static aclError end_config(void *made) { return aclrtDestroyStreamConfigHandle(made); }

static aclError make_notify(void **out) { return aclrtCreateNotify(out, 0); }
static aclError make_context(void **out) { return aclrtCreateContext(out, 0); }
static aclError make_memory(void **out) { return aclrtMalloc(out, 100, ACL_MEM_MALLOC_HUGE_FIRST); }

static aclError end_context(void *made) {
  const aclError status = aclrtDestroyContext(made);
  return status == ACL_SUCCESS ? aclrtSetDevice(0) : status;
}

/* Calls that queue, on a stream without a ring yet. */
static aclrtStream stream;
static aclrtEvent event;
static void *memory;

static aclError fill(void **out) {
  (void)out;
  return aclrtMemsetAsync(memory, 8, 1, 8, stream);
}
static void do_nothing(void *unused) { (void)unused; }
static aclError launch(void **out) {
  (void)out;
  return aclrtLaunchHostFunc(stream, do_nothing, NULL);
}
static aclError record(void **out) {
  (void)out;
  return aclrtRecordEvent(event, stream);
}
static aclError wait(void **out) {
  (void)out;
  return aclrtStreamWaitEvent(stream, event);
}
static aclError keep(void *unused) {
  (void)unused;
  return ACL_SUCCESS;
}

static aclError limited_on_new_stream(int n, aclError (*call)(void **out)) {
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_OR_SAY(aclrtRecordEvent(event, NULL));
  const aclError status = limited(n, call, keep);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtDestroyStream(stream));
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclrtFree(memory));
  return status;
}

static int live_handles(void) {
  int count = 0;
  for (int kind = 0; kind < PG_KIND_COUNT; kind++) count += pg_handle_count((enum pg_kind)kind);
  return count;
}

/* undo NULL: a call that queues.  At least `least` of the first 8 allocations matter. */
static void every_failure_is_clean(aclError (*call)(void **out), aclError (*undo)(void *),
                                   int least) {
  const int before = live_handles();
  int failures = 0;
  (void)aclGetRecentErrMsg(); /* its storage is there from now on */
  for (int n = 0; n < 8; n++) {
    const aclError status = undo == NULL ? limited_on_new_stream(n, call) : limited(n, call, undo);
    assert_true((aclGetRecentErrMsg() != NULL) == (status != ACL_SUCCESS));
    assert_int_equal(live_handles(), before);
    failures += status != ACL_SUCCESS;
  }
  BETWEEN(failures, least, 7);
}

/* Takes every free slot of the kind, so that the next handle needs memory for more of them. */
static int take_all_slots(enum pg_kind kind, struct thing *things, void **handles) {
  int count = 0;
  for (;; count++) {
    init(&things[count]);
    faults_arm(0, FAULT_ONCE);
    handles[count] = pg_handle_open(kind, &things[count].object);
    faults_disarm();
    if (handles[count] == NULL) return count;
  }
}

static void with_no_free_slot(enum pg_kind kind, aclError (*call)(void **out),
                              aclError (*undo)(void *), int least) {
  static struct thing things[16384];
  static void *handles[16384];
  const int taken = take_all_slots(kind, things, handles);
  every_failure_is_clean(call, undo, least);
  for (int i = 0; i < taken; i++) pg_release(pg_handle_close(handles[i], kind));
}

static void creating_survives_every_failing_allocation(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSynchronizeStream(NULL)); /* the default stream is there from now on */
  with_no_free_slot(PG_TENSOR, make_tensor, end_tensor, 2);
  with_no_free_slot(PG_INT_ARRAY, make_ints, end_ints, 2);
  with_no_free_slot(PG_SCALAR, make_scalar, end_scalar, 2);
  with_no_free_slot(PG_TENSOR_LIST, make_list, end_list, 2);
  with_no_free_slot(PG_DATA_BUFFER, make_buffer, end_buffer, 2);
  with_no_free_slot(PG_NOTIFY, make_notify, aclrtDestroyNotify, 2);
  with_no_free_slot(PG_CONTEXT, make_context, end_context, 2);
  with_no_free_slot(PG_EVENT, aclrtCreateEvent, aclrtDestroyEvent, 2);
  with_no_free_slot(PG_STREAM, aclrtCreateStream, aclrtDestroyStream, 3);
  every_failure_is_clean(make_config, end_config, 1);
  every_failure_is_clean(make_memory, aclrtFree, 1);
}

static void queueing_survives_every_failing_allocation(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  every_failure_is_clean(fill, NULL, 1);
  every_failure_is_clean(launch, NULL, 1);
  every_failure_is_clean(record, NULL, 2);
  every_failure_is_clean(wait, NULL, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_live_handle_finds_its_object),
      cmocka_unit_test(a_closed_handle_finds_nothing),
      cmocka_unit_test(an_object_outlives_its_handle_while_in_use),
      cmocka_unit_test(a_reused_slot_does_not_revive_old_handles),
      cmocka_unit_test(a_handle_that_was_closed_never_comes_back),
      cmocka_unit_test(kinds_do_not_share_slots),
      cmocka_unit_test(millions_of_uses_leave_the_count_right),
      cmocka_unit_test(a_use_and_a_close_may_race),
      cmocka_unit_test(another_kind_finds_nothing),
      cmocka_unit_test(garbage_finds_nothing),
      cmocka_unit_test(iteration_visits_every_live_handle_of_the_kind_once),
      cmocka_unit_test_setup_teardown(ten_thousand_rounds_do_not_grow, set_up_device,
                                      tear_down_device),
      cmocka_unit_test_setup_teardown(creating_survives_every_failing_allocation, set_up_device,
                                      tear_down_device),
      cmocka_unit_test_setup_teardown(queueing_survives_every_failing_allocation, set_up_device,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
