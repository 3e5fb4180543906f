/* SPDX-License-Identifier: Apache-2.0 */
/* From which size on gradInput is stored past the caches.  Results are the same either way, so only
 * this test sees the limit. */
#include "expect.h"

#include "cpu/nontemporal.h"

static const int64_t most = INT64_C(4) << 20;

static void expect_from(int64_t bytes) {
  assert_false(pg_prefers_nontemporal(bytes - 1));
  assert_true(pg_prefers_nontemporal(bytes));
}

/* Before aclInit: nothing is decided yet, so this comes first. */
static void a_wrong_size_leaves_the_most(void **state) {
  (void)state;
  setenv("POOLGRAD_STREAM_BYTES", "many", 1);
  expect_from(most);
}

static void the_first_question_reads_the_size(void **state) {
  (void)state;
  setenv("POOLGRAD_STREAM_BYTES", "5000", 1);
  expect_from(5000);
  setenv("POOLGRAD_STREAM_BYTES", "6000", 1);
  expect_from(5000); /* read once */
}

static void a_size_may_be_given(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 1000, INT64_C(1) << 40};
  for (int i = 0; i < 3; i++) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)sizes[i]);
    setenv("POOLGRAD_STREAM_BYTES", text, 1);
    OK_OR_SAY(pg_nontemporal_configure("test"));
    expect_from(sizes[i]);
  }
}

/* Of the third level, or of the second where there is no third; 0 if the system does not say. */
static int64_t cache_bytes(void) {
  static const char *const files[] = {"/sys/devices/system/cpu/cpu0/cache/index3/size",
                                      "/sys/devices/system/cpu/cpu0/cache/index2/size"};
  for (int i = 0; i < 2; i++) {
    long long kib = 0;
    FILE *file = fopen(files[i], "re");
    if (file == NULL) continue;
    const bool said = fscanf(file, "%lldK", &kib) == 1 && kib > 0;
    fclose(file);
    if (said) return kib * 1024;
  }
  return 0;
}

/* An eighth of the cache, but no more than 4 MiB. */
static void otherwise_the_cache_decides(void **state) {
  (void)state;
  const int64_t eighth = cache_bytes() / 8;
  for (int empty = 0; empty < 2; empty++) {
    unsetenv("POOLGRAD_STREAM_BYTES");
    if (empty == 1) setenv("POOLGRAD_STREAM_BYTES", "", 1);
    OK_OR_SAY(pg_nontemporal_configure("test"));
    expect_from(eighth > 0 && eighth < most ? eighth : most);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wrong_size_leaves_the_most),
      cmocka_unit_test(the_first_question_reads_the_size),
      cmocka_unit_test(a_size_may_be_given),
      cmocka_unit_test(otherwise_the_cache_decides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
