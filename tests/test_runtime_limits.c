/* SPDX-License-Identifier: Apache-2.0 */
/* How many streams and events there can be, and what the next one is told. */
#include "expect.h"

enum { STREAMS = 1984, EVENTS = 65536 };

static void the_stream_behind_the_last_one_is_refused(void **state) {
  (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("a sanitizer needs too much memory of its own for 1984 threads");
#endif
  static aclrtStream streams[STREAMS];
  uint32_t left;
  aclrtStream more = NULL;
  for (int i = 0; i < STREAMS; i++) OK_OR_SAY(aclrtCreateStream(&streams[i]));
  OK_OR_SAY(aclrtGetStreamAvailableNum(&left));
  assert_int_equal(left, 0);
  FAILS(aclrtCreateStream(&more), ACL_ERROR_RT_NO_STREAM_RESOURCE, "aclrtCreateStream", "1984");
  assert_null(more);
  OK_OR_SAY(aclrtDestroyStream(streams[0]));
  OK_OR_SAY(aclrtCreateStream(&streams[0]));
  for (int i = 0; i < STREAMS; i++) OK_OR_SAY(aclrtDestroyStream(streams[i]));
  OK_OR_SAY(aclrtGetStreamAvailableNum(&left));
  assert_int_equal(left, STREAMS);
}

static void the_event_behind_the_last_one_is_refused(void **state) {
  (void)state;
  static aclrtEvent events[EVENTS];
  uint32_t left;
  aclrtEvent more = NULL;
  for (int i = 0; i < EVENTS; i++) OK_OR_SAY(aclrtCreateEvent(&events[i]));
  OK_OR_SAY(aclrtGetEventAvailNum(&left));
  assert_int_equal(left, 0);
  FAILS(aclrtCreateEvent(&more), ACL_ERROR_RT_NO_EVENT_RESOURCE, "aclrtCreateEvent", "65536");
  assert_null(more);
  for (int i = 0; i < EVENTS; i++) OK_OR_SAY(aclrtDestroyEvent(events[i]));
  OK_OR_SAY(aclrtCreateEvent(&more));
  OK_OR_SAY(aclrtDestroyEvent(more));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_stream_behind_the_last_one_is_refused),
      cmocka_unit_test(the_event_behind_the_last_one_is_refused),
  };
  return cmocka_run_group_tests(tests, set_up_device, tear_down_device);
}
