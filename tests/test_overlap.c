/* SPDX-License-Identifier: Apache-2.0 */
/* Views whose cells share memory: the search against an enumeration of every small view. */
#include "expect.h"

#include "ops/overlap.h"

enum { AXES = 4, DIM_MOST = 4, STRIDE_MOST = 9, PLACES = AXES * (DIM_MOST - 1) * STRIDE_MOST + 1 };

static bool is_shared(int rank, const int64_t *dims, const int64_t *strides) {
  bool taken[PLACES] = {false};
  int64_t cells = 1;
  for (int i = 0; i < rank; i++) cells *= dims[i];
  for (int64_t cell = 0; cell < cells; cell++) {
    int64_t place = 0, rest = cell;
    for (int i = 0; i < rank; rest /= dims[i++]) place += rest % dims[i] * strides[i];
    if (taken[place]) return true;
    taken[place] = true;
  }
  return false;
}

static const char *const words[] = {"apart", "shared", "undecided"};

/* Digits of the number choose dims and strides. */
static void every_small_view_is_decided_rightly(void **state) {
  (void)state;
  int found[2] = {0};
  for (int rank = 0; rank <= 3; rank++) {
    int views = 1;
    for (int i = 0; i < rank; i++) views *= DIM_MOST * (STRIDE_MOST + 1);
    for (int view = 0; view < views; view++) {
      int64_t dims[AXES], strides[AXES];
      int rest = view;
      for (int i = 0; i < rank; i++) {
        dims[i] = 1 + rest % DIM_MOST;
        rest /= DIM_MOST;
        strides[i] = rest % (STRIDE_MOST + 1);
        rest /= STRIDE_MOST + 1;
      }
      const enum pg_overlap expected = is_shared(rank, dims, strides) ? PG_SHARED : PG_APART;
      if (pg_overlap(rank, dims, strides) != expected)
        fail_msg("rank %d, view %d is %s", rank, view, words[expected]);
      found[expected]++;
    }
  }
  assert_true(found[PG_APART] > 1000 && found[PG_SHARED] > 1000);
}

static void views_of_four_axes_are_decided_rightly(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (int round = 0; round < 200000; round++) {
    int64_t dims[AXES], strides[AXES];
    for (int i = 0; i < AXES; i++) {
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      dims[i] = 1 + (int64_t)(seed % DIM_MOST);
      strides[i] = (int64_t)(seed / 64 % (STRIDE_MOST + 1));
    }
    const enum pg_overlap expected = is_shared(AXES, dims, strides) ? PG_SHARED : PG_APART;
    if (pg_overlap(AXES, dims, strides) != expected)
      fail_msg("%s: [%d,%d,%d,%d] with strides [%d,%d,%d,%d]", words[expected], (int)dims[0],
               (int)dims[1], (int)dims[2], (int)dims[3], (int)strides[0], (int)strides[1],
               (int)strides[2], (int)strides[3]);
  }
}

static void large_views_are_decided(void **state) {
  (void)state;
  static const struct {
    int rank;
    int64_t dims[5], strides[5];
    enum pg_overlap expected;
  } table[] = {
      {5, {256, 64, 1, 112, 112}, {802816, 12544, 5, 112, 1}, PG_APART}, /* contiguous */
      {5, {256, 64, 1, 112, 112}, {802816, 1, 0, 7168, 64}, PG_APART},   /* channels last */
      {4, {256, 64, 112, 112}, {802816, 12544, 112, 0}, PG_SHARED},      /* one row */
      {3, {1000, 1000, 1000}, {3, 2, 1}, PG_SHARED},                     /* windows */
      {2, {100000, 100000}, {100001, 100000}, PG_APART},                 /* a row too short */
      {2, {100000, 100001}, {100001, 100000}, PG_APART},                 /* x would be 100000 */
      {2, {100001, 100002}, {100001, 100000}, PG_SHARED},                /* and is */
      {2, {INT64_C(1) << 30, INT64_C(1) << 30}, {INT64_C(1) << 30, 1}, PG_APART},
      {2, {INT64_C(1) << 30, (INT64_C(1) << 30) + 1}, {INT64_C(1) << 30, 1}, PG_SHARED},
      {3, {1 << 20, 1 << 20, 2}, {1 << 21, 2, 1}, PG_APART},                /* interleaved */
      {1, {2}, {INT64_MAX}, PG_UNDECIDED},                                  /* beyond 2^62 */
      {5, {99, 98, 97, 96, 95}, {9900, 9803, 9707, 9612, 9518}, PG_SHARED}, /* small differences */
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const enum pg_overlap found = pg_overlap(table[i].rank, table[i].dims, table[i].strides);
    if (found != table[i].expected) fail_msg("row %zu is %s", i, words[found]);
  }
}

/* Strides of one size that share no divisor: the hard kind, given up in time. */
static void a_search_that_is_too_long_is_given_up(void **state) {
  (void)state;
  const int64_t dims[] = {62, 49, 33, 51};
  const int64_t strides[] = {1635723058, 1125898167, 1089018456, 1656478042};
  assert_int_equal(pg_overlap(4, dims, strides), PG_UNDECIDED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_small_view_is_decided_rightly),
      cmocka_unit_test(views_of_four_axes_are_decided_rightly),
      cmocka_unit_test(large_views_are_decided),
      cmocka_unit_test(a_search_that_is_too_long_is_given_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
