/* SPDX-License-Identifier: Apache-2.0 */
/* What reduce_any.c does in one class.  It is included for each, with
 *
 *   number     the type of the class
 *   of(name)   the name of a function of the class
 *   plus(a, b) a sum
 *   is_nan(x) */

/* The sum of a block. */
static number of(sum_block)(const number *x, int64_t count) {
  number partial[PG_REDUCE_PARTIAL] = {0};
  int64_t i = 0;
  for (; i + PG_REDUCE_PARTIAL <= count; i += PG_REDUCE_PARTIAL)
    for (int p = 0; p < PG_REDUCE_PARTIAL; p++) partial[p] = plus(partial[p], x[i + p]);
  for (int p = 0; i < count; i++, p++) partial[p] = plus(partial[p], x[i]);
  for (int half = PG_REDUCE_PARTIAL / 2; half > 0; half /= 2)
    for (int p = 0; p < half; p++) partial[p] = plus(partial[p], partial[p + half]);
  return partial[0];
}

/* The sums of blocks are elements of blocks, until one is left. */
static number of(sum_of_sums)(number *sums, int64_t count) {
  while (count > 1) {
    const int64_t blocks = pg_ceil_div(count, PG_REDUCE_BLOCK);
    for (int64_t b = 0; b < blocks; b++)
      sums[b] = of(sum_block)(sums + b * PG_REDUCE_BLOCK,
                              least(PG_REDUCE_BLOCK, count - b * PG_REDUCE_BLOCK));
    count = blocks;
  }
  return sums[0];
}

/* A number and its position; -1: none yet. */
struct of(extremum) {
  number value;
  int64_t position;
};

/* Takes an element behind all others so far.  A NaN replaces everything, and only a NaN a NaN. */
static void of(take)(struct of(extremum) * best, number x, int64_t position, bool greatest) {
  const bool is_beyond = greatest ? x > best->value : x < best->value;
  if (best->position >= 0 && !is_nan(x) && !is_beyond) return;
  best->value = x;
  best->position = position;
}

/* The same for what is anywhere: the last NaN, or the first of equal elements. */
static void of(merge)(struct of(extremum) * best, number x, int64_t position, bool greatest) {
  const bool was_nan = is_nan(best->value), other_is_nan = is_nan(x);
  bool replaces = greatest ? x > best->value : x < best->value;
  if (was_nan || other_is_nan)
    replaces = other_is_nan && (!was_nan || position > best->position);
  else if (x == best->value)
    replaces = position < best->position;
  if (!replaces) return;
  best->value = x;
  best->position = position;
}

/* Each of 32 lanes keeps the best of every 32nd element. */
#define TAKE_LANES(beyond)                                                                    \
  for (int64_t i = PG_REDUCE_PARTIAL; i + PG_REDUCE_PARTIAL <= count; i += PG_REDUCE_PARTIAL) \
    for (int p = 0; p < PG_REDUCE_PARTIAL; p++) {                                             \
      const number e = x[i + p];                                                              \
      const bool replaces = (e beyond value[p]) | is_nan(e);                                  \
      value[p] = replaces ? e : value[p];                                                     \
      at[p] = replaces ? (int32_t)i : at[p];                                                  \
    }

/* The best of a block, taken behind all blocks before it. */
static void of(take_block)(struct of(extremum) * best, const number *x, int64_t count,
                           int64_t first, bool greatest) {
  struct of(extremum) own = {0, -1};
  int64_t i = 0;
  if (count >= PG_REDUCE_PARTIAL) {
    number value[PG_REDUCE_PARTIAL];
    int32_t at[PG_REDUCE_PARTIAL] = {0};
    memcpy(value, x, sizeof value);
    if (greatest)
      TAKE_LANES(>)
    else
      TAKE_LANES(<)
    own = (struct of(extremum)){value[0], at[0]};
    for (int p = 1; p < PG_REDUCE_PARTIAL; p++) of(merge)(&own, value[p], at[p] + p, greatest);
    i = count / PG_REDUCE_PARTIAL * PG_REDUCE_PARTIAL;
  }
  for (; i < count; i++) of(take)(&own, x[i], i, greatest);
  if (own.position >= 0) of(take)(best, own.value, first + own.position, greatest);
}

#undef TAKE_LANES

/* ALL and ANY: is one of the elements not as `value`? */
static bool of(has_other)(const number *x, int64_t count, bool value) {
  int32_t others = 0;
  for (int64_t i = 0; i < count; i++) others |= (x[i] != 0) != value;
  return others != 0;
}

/* --- Outputs and items --- */

static number of(finish_sum)(const struct any_reduce *r, number sum) {
  return r->plan.a->divisor == 1 ? sum : divided(sum, r->plan.a->divisor);
}

/* The sums of some blocks of an output whose elements begin at `from`. */
static void of(sum_blocks)(const struct any_reduce *r, const char *from,
                           const struct pg_reduce_item *item, number *sums) {
  for (int64_t b = item->first_block; b < item->end_block && !pg_is_stopped(r->scratch); b++)
    *sums++ = of(sum_block)(load_block(r, from, b), pg_block_length(&r->plan, b));
}

static struct of(extremum) of(best_of_blocks)(const struct any_reduce *r, const char *from,
                                              const struct pg_reduce_item *item) {
  const enum pg_reduce_function f = r->plan.a->function;
  struct of(extremum) best = {0, -1};
  for (int64_t b = item->first_block; b < item->end_block && !pg_is_stopped(r->scratch); b++) {
    const number *const x = load_block(r, from, b);
    const int64_t count = pg_block_length(&r->plan, b);
    if (!pg_is_logic(&r->plan))
      of(take_block)(&best, x, count, b * PG_REDUCE_BLOCK, f == PG_REDUCE_MAX);
    else if (of(has_other)(x, count, f == PG_REDUCE_ALL))
      best = (struct of(extremum)){f == PG_REDUCE_ANY, 0};
  }
  if (best.position < 0) best.value = f == PG_REDUCE_ALL; /* ANY found none, MAX has none */
  return best;
}

/* Of a panel with all of its blocks. */
static void of(reduce_output)(const struct any_reduce *r, const char *from,
                              const struct pg_reduce_item *item, int64_t output) {
  struct any_room *room = r->room;
  number *const results = (number *)(void *)&room->results;
  if (pg_is_sum(&r->plan)) {
    number *const sums = (number *)(void *)room->sums;
    of(sum_blocks)(r, from, item, sums);
    results[output] = of(finish_sum)(r, of(sum_of_sums)(sums, r->plan.blocks));
    return;
  }
  const struct of(extremum) best = of(best_of_blocks)(r, from, item);
  results[output] = best.value;
  room->positions[output] = best.position;
}

/* Of the only output of a panel, some blocks, which go to the workspace. */
static void of(reduce_chunk)(const struct any_reduce *r, const char *from,
                             const struct pg_reduce_item *item) {
  if (pg_is_sum(&r->plan)) {
    /* numbers of an output follow each other, whatever their size */
    number *const sums = pg_partial_sums(&r->plan, item->panel_number, 0);
    of(sum_blocks)(r, from, item, sums + item->first_block);
    return;
  }
  const struct of(extremum) best = of(best_of_blocks)(r, from, item);
  *(number *)pg_partial_values(&r->plan, item->panel_number, item->chunk) = best.value;
  *pg_partial_positions(&r->plan, item->panel_number, item->chunk) = best.position;
}

/* Puts the chunks of an output together. */
static void of(finish_output)(const struct any_reduce *r, int64_t panel) {
  const struct pg_reduction *plan = &r->plan;
  const enum pg_reduce_function f = plan->a->function;
  number *const result = (number *)(void *)&r->room->results;
  if (pg_is_sum(plan)) {
    number *const sums = pg_partial_sums(plan, panel, 0);
    *result = of(finish_sum)(r, of(sum_of_sums)(sums, plan->blocks));
    return;
  }
  struct of(extremum) best = {0, -1};
  for (int64_t chunk = 0; chunk < plan->chunks; chunk++) {
    const number value = *(const number *)pg_partial_values(plan, panel, chunk);
    const int64_t position = *pg_partial_positions(plan, panel, chunk);
    if (!pg_is_logic(plan))
      of(take)(&best, value, position, f == PG_REDUCE_MAX);
    else if (chunk == 0 || (value != 0) != (f == PG_REDUCE_ALL))
      best = (struct of(extremum)){value, 0};
  }
  *result = best.value;
  r->room->positions[0] = best.position;
}
