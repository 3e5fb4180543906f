/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tiling.h"

#include "core/checked.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t at_least_one(int64_t a) { return a < 1 ? 1 : a; }

/* How long the parts of a length are, at most `most`, if they are about equally long.  Small calls
 * have one part along most axes; they do not wait for divisions, here and below. */
static int64_t even_part(int64_t length, int64_t most) {
  if (most < 1) return 1;
  return length <= most && length > 0 ? length : pg_ceil_div(length, pg_ceil_div(length, most));
}

static int64_t part_count(int64_t length, int64_t part) {
  return length == part ? 1 : pg_ceil_div(length, part);
}

static struct pg_tiling counted(struct pg_tiling t, const struct pg_pooling *p) {
  t.d_items = part_count(p->d.in, t.d);
  t.h_items = part_count(p->h.in, t.h);
  t.w_items = part_count(p->w.in, t.w);
  t.plane_items = t.interleaved && t.planes < p->c ? p->n * pg_ceil_div(p->c, t.planes)
                                                   : part_count(p->n * p->c, t.planes);
  return t;
}

int64_t pg_tiling_items(const struct pg_tiling *t) {
  return t->plane_items * t->d_items * t->h_items * t->w_items;
}

struct pg_tiling pg_tile_boxes(const struct pg_pooling *p, const struct pg_tiling *sizes) {
  return counted(*sizes, p);
}

struct pg_tiling pg_tile_flat(const struct pg_pooling *p, int64_t cells) {
  struct pg_tiling t = {.planes = 1, .d = 1, .h = 1};
  t.w = even_part(p->w.in, least(cells, PG_BOX_WIDTH));
  if (t.w == p->w.in) t.h = even_part(p->h.in, least(PG_BOX_ROWS, cells / t.w));
  if (t.h == p->h.in && t.w == p->w.in)
    t.d = even_part(p->d.in, least(PG_BOX_ROWS, cells / (t.w * t.h)));
  if (t.d == p->d.in && t.h == p->h.in && t.w == p->w.in)
    t.planes = least(at_least_one(p->n * p->c), at_least_one(cells / (t.w * t.h * t.d)));
  return counted(t, p);
}

struct pg_tiling pg_tile_square(const struct pg_pooling *p, int64_t cells, int64_t width) {
  const struct pg_tiling t = {
      .planes = 1, .d = 1, .h = least(p->h.in, cells / width), .w = least(p->w.in, width)};
  return counted(t, p);
}

struct pg_tiling pg_tile_planes(const struct pg_pooling *p, int64_t cells) {
  const int64_t plane = p->d.in * p->h.in * p->w.in;
  const int64_t planes = least(at_least_one(p->n * p->c), at_least_one(cells / plane));
  const struct pg_tiling t = {.planes = planes, .d = p->d.in, .h = p->h.in, .w = p->w.in};
  return counted(t, p);
}

/* The most neighbouring cells, up to `staged`, that the windows of staged - 3 outputs touch. */
static int64_t most_cells(const struct pg_axis *axis, int64_t staged) {
  const int64_t most = staged - 3;
  if (axis->out == 0) return staged;
  if (most < 1) return 0;
  if (axis->out <= most) return staged; /* otherwise most * stride is less than the axis */
  if (axis->kernel == 0) return least(staged, pg_mul_or_most(most - 2, axis->in) / axis->out);
  return least(staged, most * axis->stride - pg_window_span(axis));
}

/* A box has a whole number of vectors of channels: as many as a row may have, or half of them, a
 * quarter and so on, until there is room for WIDTH cells in the row. */
struct pg_tiling pg_tile_interleaved(const struct pg_facts *f, int64_t row, int64_t staged) {
  enum { LANES = 16, CHANNELS = 64, WIDTH = 8, ROWS = 32, CELLS = 4096 };
  const struct pg_pooling *p = &f->pool;
  const int64_t output_rows =
      pg_mul_or_most(pg_most_touching(&p->d, 1), pg_most_touching(&p->h, 1) + 1);
  struct pg_tiling t = {.interleaved = true, .d = 1};
  int64_t vectors = row / p->w.in / LANES;
  if (vectors < CHANNELS / LANES) vectors = CHANNELS / LANES;
  do {
    t.planes = least(p->c, even_part(pg_ceil_div(p->c, LANES), vectors) * LANES);
    t.w = most_cells(&p->w, (staged / at_least_one(output_rows) - LANES) / t.planes);
    t.w = at_least_one(least(least(p->w.in, row / t.planes), t.w));
    vectors = pg_ceil_div(t.planes, LANES) / 2;
  } while (t.w < least(p->w.in, WIDTH) && vectors > 0);
  t.w = even_part(p->w.in, t.w);
  t.h = even_part(p->h.in, least(ROWS, CELLS / t.w));
  t.h = least(p->h.in, t.h + t.h % 2); /* an even number: some methods compute two rows at once */
  return counted(t, p);
}

/* The most cells of an axis that a window holds. */
static int64_t longest_window(const struct pg_axis *axis) {
  if (axis->out == 0) return 0;
  const int64_t length =
      axis->kernel == 0 ? pg_ceil_div(axis->in, axis->out) + 1 : pg_window_span(axis) + 1;
  return least(axis->in, length);
}

/* How long bands of at most `most` cells of an axis are.  They begin with windows if possible, so
 * that where these do not overlap, no output is read for two bands. */
static int64_t band_length(const struct pg_axis *axis, int64_t most) {
  const int64_t length = even_part(axis->in, least(axis->in, most));
  if (most < 1 || axis->kernel == 0 || length < axis->stride || length == axis->in) return length;
  const int64_t longer = pg_ceil_div(length, axis->stride) * axis->stride;
  return longer <= most ? longer : longer - axis->stride;
}

/* About how many outputs of an axis a band of so many cells looks at. */
static double outputs_of_band(const struct pg_axis *axis, int64_t cells) {
  if (cells == axis->in) return (double)axis->out;
  if (axis->kernel == 0) return (double)cells * (double)axis->out / (double)axis->in + 1;
  const bool apart = pg_window_span(axis) < axis->stride && cells % axis->stride == 0;
  return (double)(cells + (apart && axis->pad == 0 ? 0 : pg_window_span(axis))) /
         (double)axis->stride;
}

/* About how many cycles an element of gradInput takes: for the outputs that it is read for, and,
 * if channels are cut, for lines of memory that two boxes share. */
static double cycles_of_bands(const struct pg_facts *f, const struct pg_tiling *t) {
  enum { LINE = 64 };
  const struct pg_pooling *p = &f->pool;
  const double outputs =
      outputs_of_band(&p->d, t->d) * outputs_of_band(&p->h, t->h) * (double)p->w.out;
  const double cells = (double)t->d * (double)t->h * (double)t->w;
  const int64_t elements = pg_mul_or_most(f->planes, f->cells);
  const int64_t bytes = f->grad_in_bytes / at_least_one(elements);
  const bool whole = t->planes == p->c, lines = p->c * bytes % LINE == 0;
  return 2.5 * outputs / cells + (whole ? 0 : lines ? 10 : 250) / (double)t->planes;
}

static void keep_better(const struct pg_facts *f, const struct pg_tiling *t, struct pg_tiling *best,
                        double *fewest) {
  const double cycles = cycles_of_bands(f, t);
  if (cycles >= *fewest) return;
  *best = *t;
  *fewest = cycles;
}

/* The most cells that a box should have, at most `cells`: threads need several items to share, but
 * rows of outputs that two boxes look at are read twice. */
static int64_t cells_to_share(const struct pg_facts *f, int64_t planes, int64_t cells) {
  enum { ITEMS = 8, BYTES = 128 << 10 }; /* of an item that is worth it */
  const int64_t wanted = at_least_one(least(ITEMS, f->bytes / BYTES));
  const int64_t band = pg_mul_or_most(6 * longest_window(&f->pool.h), f->pool.w.in);
  const int64_t groups = pg_mul_or_most(f->pool.n, pg_ceil_div(f->pool.c, planes));
  const int64_t shared = pg_mul_or_most(groups, f->cells) / wanted;
  return least(cells, shared < band ? band : shared);
}

/* Tries all channels, a half of them, a quarter and so on, with bands of rows and with bands of
 * slices.  Sums for a window are enough if each cell has been named for the last time when the
 * next band of the box needs its place: along D, and along H if no two slices of outputs name it.
 */
struct pg_tiling pg_tile_bands(const struct pg_facts *f, int64_t cells, int64_t room) {
  enum { WHOLE_LINES = 32, MOST_CHANNELS = 2048 };
  const struct pg_pooling *p = &f->pool;
  const int64_t slice = pg_mul_or_most(p->h.in, p->w.in);
  const int64_t rows = longest_window(&p->h), slices = longest_window(&p->d);
  struct pg_tiling best = {.interleaved = true, .planes = 1, .d = 1, .h = 1, .w = p->w.in};
  double fewest = 1e300;
  for (int64_t parts = pg_ceil_div(p->c, MOST_CHANNELS); parts < 2 * p->c; parts *= 2) {
    struct pg_tiling t = {.interleaved = true, .d = 1, .w = p->w.in};
    t.planes = pg_ceil_div(p->c, least(parts, p->c));
    if (parts > 1 && t.planes > WHOLE_LINES)
      t.planes = pg_ceil_div(t.planes, WHOLE_LINES) * WHOLE_LINES;
    const int64_t share = cells_to_share(f, t.planes, cells);
    int64_t most = room / t.planes / p->w.in;
    if (f->d_windows <= 1 && rows + rows / 2 < most) most = p->h.in;
    t.h = band_length(&p->h, least(most, share / p->w.in));
    if (most > 0) keep_better(f, &t, &best, &fewest);
    most = room / t.planes / slice;
    if (slices + slices / 2 < most) most = p->d.in;
    most = least(most, share / slice);
    t.h = p->h.in;
    t.d = band_length(&p->d, most);
    if (most > 1 && t.d > 1) keep_better(f, &t, &best, &fewest);
  }
  return counted(best, p);
}
