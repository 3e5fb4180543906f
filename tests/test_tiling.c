/* SPDX-License-Identifier: Apache-2.0 */
/* Items and their boxes: every cell is in one of them, and the outputs that cover it are found. */
#include "axes.h"

#include "cpu/box.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t cells_of(const struct pg_pooling *p) { return p->d.in * p->h.in * p->w.in; }

static struct pg_pooling any_pooling(uint64_t *seed, int64_t longest) {
  struct pg_pooling p = {.n = any_of(seed, 1, 3), .c = any_of(seed, 1, 3), .d = pg_axis_unit()};
  if (any_of(seed, 0, 1) == 0) p.d = any_axis(seed, 5);
  p.h = any_axis(seed, longest);
  p.w = any_axis(seed, longest);
  return p;
}

enum { LONG_POOLINGS = 15 };

/* Lengths beyond what one box holds, each way at a time. */
static struct pg_pooling long_pooling(int number) {
  static const int64_t lengths[LONG_POOLINGS][3] = {
      {1, 1, 4096}, {1, 1, 4097}, {1, 3, 9000},  {1, 512, 2},  {1, 513, 1},
      {2, 1300, 3}, {512, 1, 1},  {513, 1, 2},   {1300, 2, 2}, {3, 600, 7},
      {1, 2, 4096}, {70, 70, 1},  {1, 130, 130}, {9, 3, 4095}, {1, 3, 20000}};
  const int64_t *l = lengths[number];
  return (struct pg_pooling){.n = 1,
                             .c = 2,
                             .d = {.in = l[0], .out = 2},
                             .h = {.in = l[1], .out = 3},
                             .w = {.in = l[2], .out = 1 + l[2] / 2}};
}

/* --- Items --- */

enum { MOST_CELLS = 1 << 18 };

static bool lies_in(struct pg_range r, int64_t length) {
  return r.begin >= 0 && r.begin < r.end && r.end <= length;
}

/* Marks the cells of a box in each of its planes. */
static void mark(const struct pg_pooling *p, const struct pg_box *b, unsigned char *marks) {
  for (int64_t plane = b->first; plane < b->first + b->planes; plane++)
    for (int64_t d = b->d.begin; d < b->d.end; d++)
      for (int64_t h = b->h.begin; h < b->h.end; h++)
        for (int64_t w = b->w.begin; w < b->w.end; w++)
          marks[((plane * p->d.in + d) * p->h.in + h) * p->w.in + w]++;
}

static void check_box(const struct pg_tiling *t, const struct pg_pooling *p,
                      const struct pg_box *b) {
  assert_true(lies_in((struct pg_range){b->first, b->first + b->planes}, p->n * p->c));
  assert_true(lies_in(b->d, p->d.in) && lies_in(b->h, p->h.in) && lies_in(b->w, p->w.in));
  assert_true(b->planes <= t->planes && pg_length(b->d) <= t->d);
  assert_true(pg_length(b->h) <= t->h && pg_length(b->w) <= t->w);
  assert_int_equal(b->cells, pg_length(b->d) * pg_length(b->h) * pg_length(b->w));
  assert_int_equal(b->whole, b->cells == cells_of(p));
  if (t->interleaved && t->planes < p->c)
    assert_int_equal(b->first / p->c, (b->first + b->planes - 1) / p->c);
  else if (t->interleaved)
    assert_true(b->first % p->c == 0 && b->planes % p->c == 0);
}

static void check_items(const struct pg_tiling *t, const struct pg_pooling *p) {
  static unsigned char marks[MOST_CELLS];
  const int64_t items = pg_tiling_items(t), all = p->n * p->c * cells_of(p);
  assert_true(all <= MOST_CELLS);
  memset(marks, 0, (size_t)all);
  for (int64_t item = 0; item < items; item++) {
    const struct pg_box b = pg_box_of(t, p, item);
    check_box(t, p, &b);
    mark(p, &b, marks);
  }
  for (int64_t i = 0; i < all; i++)
    if (marks[i] != 1) fail_msg("cell %d is in %d items", (int)i, marks[i]);
  assert_int_equal(pg_tiling_cuts(t), items > t->plane_items);
}

/* --- Tilings --- */

/* With one item less along the axis, parts would be longer than `most`. */
static void check_fewest(int64_t length, int64_t items, int64_t most) {
  if (items > 1) assert_true(pg_ceil_div(length, items - 1) > most);
}

/* All parts are about as long. */
static bool is_even(int64_t length, int64_t items, int64_t part) {
  return part == pg_ceil_div(length, items);
}

/* An axis is cut only if a box is one cell along all axes outside of it. */
static void check_flat(const struct pg_tiling *t, const struct pg_pooling *p, int64_t cells) {
  assert_false(t->interleaved);
  assert_true(t->planes * t->d * t->h * t->w <= cells);
  assert_true(t->w <= PG_BOX_WIDTH && t->h <= PG_BOX_ROWS && t->d <= PG_BOX_ROWS);
  assert_true(is_even(p->w.in, t->w_items, t->w) && is_even(p->h.in, t->h_items, t->h));
  assert_true(is_even(p->d.in, t->d_items, t->d));
  if (t->w_items > 1) assert_int_equal(t->h, 1);
  if (t->w_items > 1 || t->h_items > 1) assert_int_equal(t->d, 1);
  if (pg_tiling_cuts(t)) assert_int_equal(t->planes, 1);
  check_fewest(p->w.in, t->w_items, least(PG_BOX_WIDTH, cells));
  if (t->w_items == 1) check_fewest(p->h.in, t->h_items, least(PG_BOX_ROWS, cells / t->w));
  if (t->w_items == 1 && t->h_items == 1)
    check_fewest(p->d.in, t->d_items, least(PG_BOX_ROWS, cells / t->w / t->h));
  if (!pg_tiling_cuts(t) && t->planes < p->n * p->c)
    assert_true((t->planes + 1) * cells_of(p) > cells);
}

static void flat_items_hold_every_cell_once(void **state) {
  (void)state;
  uint64_t seed = 123456789;
  for (int64_t cells = 1024; cells <= 8192; cells *= 2)
    for (int number = 0; number < LONG_POOLINGS; number++) {
      const struct pg_pooling p = long_pooling(number);
      const struct pg_tiling t = pg_tile_flat(&p, cells);
      check_flat(&t, &p, cells);
      check_items(&t, &p);
    }
  for (int round = 0; round < 6000; round++) {
    const struct pg_pooling p = any_pooling(&seed, 20);
    const int64_t cells = any_of(&seed, 1, 3000);
    const struct pg_tiling t = pg_tile_flat(&p, cells);
    check_flat(&t, &p, cells);
    check_items(&t, &p);
  }
}

static void square_items_hold_every_cell_once(void **state) {
  (void)state;
  uint64_t seed = 123456789;
  for (int round = 0; round < 3000; round++) {
    const bool is_long = round < LONG_POOLINGS;
    const struct pg_pooling p = is_long ? long_pooling(round) : any_pooling(&seed, 20);
    const int64_t width = is_long ? 128 : any_of(&seed, 1, 24);
    const int64_t cells = width * any_of(&seed, 1, 24) + any_of(&seed, 0, width - 1);
    const struct pg_tiling t = pg_tile_square(&p, cells, width);
    assert_true(t.planes == 1 && t.d == 1 && !t.interleaved);
    assert_int_equal(t.w, least(width, p.w.in));
    assert_int_equal(t.h, least(cells / width, p.h.in));
    check_items(&t, &p);
  }
}

/* Interleaved boxes may have all channels of several n. */
static void boxes_of_several_n_hold_every_cell_once(void **state) {
  (void)state;
  uint64_t seed = 123456789;
  for (int round = 0; round < 3000; round++) {
    const struct pg_pooling p = any_pooling(&seed, 12);
    const struct pg_tiling sizes = {.interleaved = true,
                                    .planes = p.c * any_of(&seed, 1, 4),
                                    .d = p.d.in,
                                    .h = p.h.in,
                                    .w = p.w.in};
    const struct pg_tiling t = pg_tile_boxes(&p, &sizes);
    assert_int_equal(t.planes, sizes.planes);
    check_items(&t, &p);
  }
}

static void whole_planes_hold_every_cell_once(void **state) {
  (void)state;
  uint64_t seed = 123456789;
  for (int round = 0; round < 3000; round++) {
    const struct pg_pooling p = any_pooling(&seed, 12);
    const int64_t cells = any_of(&seed, 1, 2000);
    const struct pg_tiling t = pg_tile_planes(&p, cells);
    assert_false(pg_tiling_cuts(&t) || t.interleaved);
    assert_true(t.planes == 1 || t.planes * cells_of(&p) <= cells);
    if (t.planes < p.n * p.c) assert_true((t.planes + 1) * cells_of(&p) > cells);
    check_items(&t, &p);
  }
}

enum { LANES = 16, BEHIND = 3 /* outputs that methods may load behind those of a row */ };

/* How many outputs of each row may be staged for each channel, if cells lie in outputs of `d`
 * slices and `h` rows; one row more is staged. */
static int64_t room_of(const struct pg_tiling *t, int64_t d, int64_t h, int64_t staged) {
  const int64_t rows = d * (h + 1);
  return (staged / (rows < 1 ? 1 : rows) - LANES) / t->planes;
}

/* A box of one cell may be too much already; methods see that for themselves.  Boxes are not
 * narrower than they need be: one less in a row would be too wide, for what pg_most_touching says
 * of all three axes (and for adaptive windows one output more). */
static void check_interleaved(const struct pg_tiling *t, const struct pg_pooling *p, int64_t row,
                              int64_t staged) {
  assert_true(t->interleaved && t->d == 1 && t->planes <= p->c);
  assert_true(t->planes == p->c || t->planes % LANES == 0);
  assert_true(t->h <= 32 && (t->h % 2 == 0 || t->h == p->h.in));
  assert_true(t->h <= pg_ceil_div(p->h.in, t->h_items) + 1);
  check_fewest(p->h.in, t->h_items, least(32, 4096 / t->w));
  assert_true(is_even(p->w.in, t->w_items, t->w));
  int64_t room = room_of(t, most_touching(&p->d, 1), most_touching(&p->h, 1), staged);
  assert_true(t->w == 1 || t->w * t->planes <= row);
  assert_true(t->w == 1 || most_touching(&p->w, t->w) + BEHIND <= room);
  if (t->w_items == 1) return;
  const int64_t wider = pg_ceil_div(p->w.in, t->w_items - 1);
  const int64_t touching = pg_most_touching(&p->w, wider) + (p->w.kernel == 0) + BEHIND;
  room = room_of(t, pg_most_touching(&p->d, 1), pg_most_touching(&p->h, 1), staged);
  assert_true(wider * t->planes > row || wider > room || touching > room);
}

static void interleaved_items_hold_every_cell_once(void **state) {
  (void)state;
  uint64_t seed = 123456789;
  int seen[2][2] = {{0}};
  for (int round = 0; round < 3000; round++) {
    struct pg_pooling p = any_pooling(&seed, 20);
    p.d = round % 4 == 0 ? p.d : pg_axis_unit();
    p.c = any_of(&seed, 4, any_of(&seed, 0, 1) == 0 ? 20 : 300);
    while (p.n * p.c * cells_of(&p) > MOST_CELLS) p.c /= 2;
    const int64_t row = any_of(&seed, 256, 4096), staged = any_of(&seed, 1024, 16384);
    const struct pg_facts f = {.pool = p};
    const struct pg_tiling t = pg_tile_interleaved(&f, row, staged);
    check_interleaved(&t, &p, row, staged);
    check_items(&t, &p);
    seen[0][t.w_items > 1]++;
    seen[1][t.planes < p.c]++;
  }
  assert_true(seen[0][0] > 100 && seen[0][1] > 100 && seen[1][0] > 100 && seen[1][1] > 100);
}

/* Two rows of outputs are staged.  Their windows along W hold one cell each, or all 40. */
static void channels_are_halved_until_boxes_are_wide(void **state) {
  (void)state;
  static const struct {
    int64_t channels, kernel, places; /* for outputs of a row, with 16 channels */
    int64_t planes, w;
  } table[] = {
      {64, 1, 60, 64, 12}, /* 15 places with all channels, three of them behind the outputs */
      {64, 1, 32, 32, 13}, /* 8 with all, which makes 5 cells; 16 with half of them */
      {32, 1, 16, 16, 13}, {16, 1, 8, 16, 5}, /* a vector of channels is not halved */
      {16, 40, 4, 16, 4}, /* one output and three behind it: as many cells as places */
      {16, 40, 3, 16, 1},
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const int64_t kernel = table[i].kernel, staged = 2 * (table[i].places * LANES + LANES);
    const struct pg_axis w = {40, 40 / kernel, kernel, kernel, 0, 1};
    const struct pg_facts f = {.pool = {1, table[i].channels, pg_axis_unit(), pg_axis_unit(), w}};
    const struct pg_tiling t = pg_tile_interleaved(&f, 4096, staged);
    assert_int_equal(t.planes, table[i].planes);
    assert_int_equal(t.w, pg_ceil_div(40, pg_ceil_div(40, table[i].w))); /* even parts */
  }
}

static int64_t longest_window(const struct pg_axis *axis) {
  int64_t longest = 0;
  for (int64_t o = 0; o < axis->out; o++) {
    const int64_t length = pg_length(pg_window_clip(axis, pg_window(axis, o)));
    if (length > longest) longest = length;
  }
  return longest;
}

/* Sums for a box, or for the cells of any window in it if the others are done with: those of
 * slices, and those of rows if no cell lies in the windows of two slices. */
static int64_t sums_of(const struct pg_tiling *t, const struct pg_facts *f) {
  const struct pg_pooling *p = &f->pool;
  const int64_t d = least(t->d, longest_window(&p->d)), h = least(t->h, longest_window(&p->h));
  if (t->d > 1) return d * t->h * t->w * t->planes;
  return (f->d_windows <= 1 ? h : t->h) * t->w * t->planes;
}

static void bands_hold_every_cell_once(void **state) {
  (void)state;
  uint64_t seed = 362436069;
  int seen[4][2] = {{0}};
  for (int round = 0; round < 3000; round++) {
    struct pg_pooling p = any_pooling(&seed, 20);
    p.c = any_of(&seed, 2, any_of(&seed, 0, 1) == 0 ? 20 : 300);
    while (p.n * p.c * cells_of(&p) > MOST_CELLS) p.c = (p.c + 1) / 2;
    const int64_t cells = p.w.in + any_of(&seed, 0, 800), room = p.w.in + any_of(&seed, 0, 20000);
    const struct pg_facts f = {.pool = p,
                               .planes = p.n * p.c,
                               .cells = cells_of(&p),
                               .d_windows = pg_most_windows(&p.d),
                               .grad_in_bytes = 2 * p.n * p.c * cells_of(&p)};
    const struct pg_tiling t = pg_tile_bands(&f, cells, room);
    check_items(&t, &p);
    assert_true(t.interleaved && t.w == p.w.in && (t.d == 1 || t.h == p.h.in));
    assert_true(t.d * t.h * t.w <= cells && sums_of(&t, &f) <= room);
    seen[0][t.d > 1]++;
    seen[1][t.h < p.h.in]++;
    seen[2][t.planes < p.c]++;
    seen[3][t.d * t.h * t.w * t.planes > room]++;
  }
  for (int i = 0; i < 4; i++) assert_true(seen[i][0] > 100 && seen[i][1] > 100);
}

/* Work on gradients of stride 0 is bounded by memory, but not windows that hang over the edges. */
static void huge_windows_are_tiled(void **state) {
  (void)state;
  const int64_t tall = INT64_C(1) << 60;
  const struct pg_axis huge = slide((struct pg_axis){20, 0, tall, 1, tall / 2, 1}, false);
  const struct pg_axis many = {.in = 3, .out = INT64_C(1) << 60};
  const struct pg_facts facts[] = {{.pool = {2, 32, pg_axis_unit(), huge, huge}},
                                   {.pool = {2, 32, many, huge, huge}},
                                   {.pool = {2, 32, many, many, many}}};
  for (int i = 0; i < 3; i++) {
    const struct pg_tiling t = pg_tile_interleaved(&facts[i], 2048, 8192);
    check_items(&t, &facts[i].pool);
    const struct pg_tiling bands = pg_tile_bands(&facts[i], 8192, 1 << 16);
    check_items(&bands, &facts[i].pool);
  }
}

/* Those that will be read next lie so much further on, unless that is too far to be fetched. */
static void items_know_how_many_outputs_they_have(void **state) {
  (void)state;
  static const struct {
    int64_t outputs, planes, d_items, h_items, w_items, expected;
  } table[] = {
      {100, 7, 1, 1, 1, 700},     {1000, 1, 2, 1, 1, 500},
      {1000, 1, 1, 3, 1, 333},    {1000, 1, 1, 1, 4, 250},
      {1000, 1, 2, 5, 4, 25},     {(1 << 20) - 1, 1, 1, 1, 1, (1 << 20) - 1},
      {1 << 20, 1, 1, 1, 1, 0},   {1 << 21, 1, 1, 4, 1, 1 << 19},
      {INT64_MAX, 2, 1, 1, 1, 0},
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const struct pg_task task = {.choice.tiling = {.planes = table[i].planes,
                                                   .d_items = table[i].d_items,
                                                   .h_items = table[i].h_items,
                                                   .w_items = table[i].w_items},
                                 .problem.facts.outputs = table[i].outputs};
    assert_int_equal(pg_outputs_per_item(&task), table[i].expected);
  }
}

/* --- Covers --- */

/* The outputs whose windows touch the cells, which follow each other; {0, 0} if there are none. */
static struct pg_range touched(const struct pg_axis *axis, int64_t begin, int64_t end) {
  struct pg_range r = {0, 0};
  for (int64_t o = 0; o < axis->out; o++) {
    const struct pg_range window = pg_window(axis, o);
    if (window.begin >= end || window.end <= begin) continue;
    if (r.end == 0) r.begin = o;
    r.end = o + 1;
  }
  return r;
}

/* Places of windows that do not exist are cut off: those that slide by one cell have them. */
static struct pg_range named_by(const struct pg_cover *m, int64_t i) {
  struct pg_range r = {m->outputs.begin + m->first[i] - m->front, 0};
  r.end = r.begin + m->count[i];
  if (m->by_one && r.begin < m->outputs.begin) r.begin = m->outputs.begin;
  if (m->by_one && r.end > m->outputs.end) r.end = m->outputs.end;
  return r.begin < r.end ? r : (struct pg_range){0, 0};
}

static void check_slack(const struct pg_cover *m) {
  const int64_t last = pg_length(m->cells) - 1;
  for (int64_t i = last + 1; i <= last + PG_COVER_SLACK; i++) {
    assert_int_equal(m->first[i], m->by_one ? m->first[last] + i - last : m->first[last]);
    assert_int_equal(m->count[i], m->by_one ? m->most : 0);
  }
}

static int slid_by_one;

static void check_cover(const struct pg_cover *m, const struct pg_axis *axis, struct pg_range cells,
                        int64_t front) {
  const struct pg_range outputs = touched(axis, cells.begin, cells.end);
  const int64_t reach = (axis->kernel - 1) * axis->dilation;
  int64_t most = 0;
  assert_true(m->cells.begin == cells.begin && m->cells.end == cells.end && m->front == front);
  assert_int_equal(pg_length(m->outputs), pg_length(outputs));
  if (pg_length(outputs) > 0) assert_int_equal(m->outputs.begin, outputs.begin);
  assert_true(m->outputs.begin <= axis->out);
  assert_int_equal(
      m->by_one, axis->kernel > 0 && axis->stride == 1 && reach <= front && pg_length(outputs) > 0);
  for (int64_t i = 0; i < pg_length(cells); i++) {
    const struct pg_range named = named_by(m, i);
    const struct pg_range expected = touched(axis, cells.begin + i, cells.begin + i + 1);
    if (named.begin != expected.begin || named.end != expected.end)
      FAIL_ON_AXIS(axis, "cell %d of %d, front %d: outputs %d to %d", (int)i, (int)cells.begin,
                   (int)front, (int)named.begin, (int)named.end);
    assert_true(m->first[i] >= 0);
    if (m->by_one) assert_true(m->count[i] == m->most && m->first[i] == m->first[0] + i);
    if (m->count[i] > most) most = m->count[i];
  }
  assert_int_equal(m->most, most);
  check_slack(m);
  slid_by_one += m->by_one && m->most > 1;
}

static void check_covers_of(struct pg_box_cover *cover, const struct pg_pooling *p,
                            const struct pg_box *b, int64_t front) {
  pg_box_cover_make(cover, p, b, front);
  check_cover(&cover->d, &p->d, b->d, 0);
  check_cover(&cover->h, &p->h, b->h, 0);
  check_cover(&cover->w, &p->w, b->w, front);
}

/* Every box, and one that begins where another did but is shorter. */
static void check_covers(const struct pg_pooling *p, const struct pg_tiling *t, int64_t front) {
  static struct pg_box_cover cover;
  struct pg_box b;
  memset(cover.room, -1, sizeof cover.room);
  pg_box_cover_begin(&cover);
  for (int64_t item = 0; item < pg_tiling_items(t); item++) {
    b = pg_box_of(t, p, item);
    check_covers_of(&cover, p, &b, front);
  }
  b = pg_box_of(t, p, 0);
  check_covers_of(&cover, p, &b, front);
  b.h.end = b.h.begin + pg_ceil_div(pg_length(b.h), 2);
  b.w.end = b.w.begin + pg_ceil_div(pg_length(b.w), 2);
  check_covers_of(&cover, p, &b, front);
}

static void covers_name_the_outputs_that_hold_each_cell(void **state) {
  (void)state;
  uint64_t seed = 123456789;
  slid_by_one = 0;
  for (int round = 0; round < 3000; round++) {
    struct pg_pooling p = any_pooling(&seed, 30);
    p.n = p.c = 1;
    if (round % 3 == 0 && p.w.kernel > 0) p.w.out = any_of(&seed, 0, p.w.out); /* cells without */
    const int64_t width = any_of(&seed, 1, 30), cells = width * any_of(&seed, 1, 30);
    const struct pg_tiling t =
        round % 2 == 0 ? pg_tile_flat(&p, cells) : pg_tile_square(&p, cells, width);
    check_covers(&p, &t, round % 4 < 2 ? 0 : LANES);
  }
  assert_true(slid_by_one > 1000);
}

/* All of the memory of the covers is used. */
static void the_largest_boxes_have_room_for_their_covers(void **state) {
  (void)state;
  struct pg_pooling p = {1,
                         1,
                         {.in = PG_BOX_ROWS, .out = 7},
                         {.in = PG_BOX_ROWS, .out = 9},
                         slide((struct pg_axis){PG_BOX_WIDTH, 0, 17, 1, 8, 1}, false)};
  const struct pg_tiling t = {.planes = 1,
                              .d = p.d.in,
                              .h = p.h.in,
                              .w = p.w.in,
                              .plane_items = 1,
                              .d_items = 1,
                              .h_items = 1,
                              .w_items = 1};
  p.w.out = 40; /* fewer than there could be, or this would take long */
  check_covers(&p, &t, LANES);
  check_covers(&p, &t, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(flat_items_hold_every_cell_once),
      cmocka_unit_test(square_items_hold_every_cell_once),
      cmocka_unit_test(boxes_of_several_n_hold_every_cell_once),
      cmocka_unit_test(whole_planes_hold_every_cell_once),
      cmocka_unit_test(interleaved_items_hold_every_cell_once),
      cmocka_unit_test(channels_are_halved_until_boxes_are_wide),
      cmocka_unit_test(bands_hold_every_cell_once),
      cmocka_unit_test(huge_windows_are_tiled),
      cmocka_unit_test(items_know_how_many_outputs_they_have),
      cmocka_unit_test(covers_name_the_outputs_that_hold_each_cell),
      cmocka_unit_test(the_largest_boxes_have_room_for_their_covers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
