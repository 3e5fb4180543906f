/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing calls at random, and judging what they give. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stress.h"

enum { ROWS_MAX = 256, COMPLAINTS_SHOWN = 20 };

/* --- random numbers --- */

static uint64_t mix(uint64_t x) { /* splitmix64 */
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

uint64_t pick(struct turn *t, uint64_t below) {
  t->state += UINT64_C(0x9e3779b97f4a7c15);
  return mix(t->state) % below;
}

static struct turn turn_of(struct worker *worker, uint64_t step) {
  return (struct turn){
      worker, mix(mix(mix(options.seed + worker->round) + (uint64_t)worker->number) + step)};
}

/* --- judging --- */

static atomic_int complaints;

void enter(struct turn *t, const char *function) {
  atomic_store_explicit(&t->worker->call, function, memory_order_relaxed);
  atomic_fetch_add_explicit(&t->worker->beats, 1, memory_order_relaxed);
}

void complain(struct turn *t, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (atomic_fetch_add(&complaints, 1) >= COMPLAINTS_SHOWN) return;
  int state;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  (void)fprintf(stderr,
                "stress: --seed %" PRIu64 " --round %" PRIu64 ", worker %d, step %" PRIu64 ": %s\n",
                options.seed, t->worker->round, t->worker->number, t->worker->step, text);
  (void)pthread_setcancelstate(state, NULL);
}

int complaint_count(void) { return atomic_load(&complaints); }

int judge(struct turn *t, const char *function, int status, const int *codes) {
  if (status == 0) return status;
  const char *text = aclGetRecentErrMsg();
  if (text == NULL || strstr(text, function) == NULL)
    complain(t, "%s gave %d with the sentence '%.300s'", function, status,
             text == NULL ? "" : text);
  while (*codes != CODES_END && *codes != status) codes++;
  if (*codes == CODES_END)
    complain(t, "%s gave %d, which it may not here: %.300s", function, status,
             text == NULL ? "" : text);
  return status;
}

void *must(struct turn *t, const char *function, const void *object) {
  if (object == NULL) complain(t, "%s gave NULL", function);
  return (void *)(uintptr_t)object;
}

/* --- the table --- */

static const struct row *table[ROWS_MAX];
static int table_rows;

static bool is_named(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

void collect_rows(void) {
  const struct row *const files[] = {device_rows, stream_rows,   event_rows,  memory_rows,
                                     object_rows, operator_rows, tensor_rows, process_rows};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
    for (const struct row *row = files[i]; row->name != NULL && table_rows < ROWS_MAX; row++)
      if ((options.only == NULL || is_named(options.only, row->name)) &&
          (options.without == NULL || !is_named(options.without, row->name)))
        table[table_rows++] = row;
}

static uint64_t weights[ROWS_MAX]; /* in this round; written before its workers start */

/* In a third of the rounds all rows come as often as they say.  In another third some are left out
 * and some stressed, and in the last only a few are left: races need calls that meet often. */
static uint64_t weight_of(struct turn *t, const struct row *row, uint64_t round) {
  static const uint64_t factors[] = {0, 0, 1, 5};
  const uint64_t factor = factors[pick(t, 4)];
  const bool chosen = chance(t, (row->flags & ENDS) != 0 ? 3 : 7);
  const uint64_t weight = (uint64_t)row->weight;
  if (round % 3 == 0) return weight;
  return round % 3 == 1 ? weight * factor : chosen ? weight : 0;
}

void weigh_rows(uint64_t round) {
  struct turn t = {NULL, mix(options.seed ^ mix(round))};
  for (int i = 0; i < table_rows; i++) weights[i] = weight_of(&t, table[i], round);
}

/* By weight, among the rows without a forbidden flag. */
static const struct row *choose(struct turn *t, int forbidden) {
  uint64_t sum = 0;
  for (int i = 0; i < table_rows; i++)
    if ((table[i]->flags & forbidden) == 0) sum += weights[i];
  if (sum == 0) return NULL;
  uint64_t left = pick(t, sum);
  for (int i = 0; i < table_rows; i++) {
    if ((table[i]->flags & forbidden) != 0) continue;
    if (left < weights[i]) return table[i];
    left -= weights[i];
  }
  return NULL;
}

static int forbidden_in(uint64_t round) { return round % 2 == 0 ? CALM : STORMY; }

/* A thread without a context could do little: half of the time it gets one. */
static void make_turn(struct turn *t, int forbidden) {
  const struct row *row = choose(t, forbidden);
  aclrtContext context = NULL;
  if (row == NULL) return;
  if (chance(t, 2) && CALL(t, aclrtGetCurrentContext, (&context), CONTEXT_CODES) != 0)
    CALL(t, aclrtSetDevice, ((int32_t)pick(t, DEVICES)), 0);
  row->make(t);
}

void make_step(struct worker *worker, uint64_t step) {
  struct turn t = turn_of(worker, step);
  worker->step = step;
  make_turn(&t, forbidden_in(worker->round));
}

void make_some_steps(struct worker *worker, uint64_t state, int count) {
  for (int i = 0; i < count; i++) {
    struct turn t = {worker, mix(state + (uint64_t)i)};
    make_turn(&t, forbidden_in(worker->round) | UNCANCELLED);
    pthread_testcancel();
  }
}

void print_steps(uint64_t count) {
  weigh_rows(options.round);
  for (int i = 0; i < options.threads; i++) {
    struct worker w = {.number = i, .round = options.round};
    for (uint64_t step = 0; step < count; step++) {
      struct turn t = turn_of(&w, step);
      const struct row *row = choose(&t, forbidden_in(w.round));
      (void)printf("%d %" PRIu64 " %s\n", i, step, row == NULL ? "-" : row->name);
    }
  }
}
