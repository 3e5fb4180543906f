/* SPDX-License-Identifier: Apache-2.0 */
/* Average-forward where the plane is one window: its cells are one row, which is dealt out to
 * PG_PARTIAL_SUMS sums.
 *
 * Planar: neighbouring cells belong to neighbouring sums, so a plane is added up in vectors as it
 * lies in memory.  The sums of LANES planes are then added by halves together, each addition for
 * two vectors at once, so that they end in one vector and are divided and stored together.  Planes
 * that are not contiguous are copied to scratch memory part by part.
 *
 * Channels last: the sums of all channels of a box lie in scratch memory, and cells are added to
 * them in the order of memory. */
#include "cpu/kernels/avg_forward_quotients.h"

enum {
  VECTORS = PG_PARTIAL_SUMS / LANES, /* that the sums of a plane take */
  STAGED = 4096,                     /* cells that are copied at once */
  LOOK_EVERY = 16384,                /* cells of a plane between two looks at pg_is_stopped */
  CHANNELS = 256,                    /* the most of an interleaved box */
  GROUP = 4,                         /* vectors of channels that are added at once, */
  BLOCK = 64,                        /* and so many cells of them */
  PREFETCHED = 448 << 10,            /* the most bytes of an n that are prefetched as a whole */
  ITEM = 16384,                      /* about so many elements of cells belong to an item */
  LEVELS = 4                         /* no fewer than LANES can be halved */
};

_Static_assert(BLOCK % PG_PARTIAL_SUMS == 0, "a block begins with the first sum");
_Static_assert(LOOK_EVERY % PG_PARTIAL_SUMS == 0, "a part of a plane begins with the first sum");

struct one_window {
  const struct pg_avg_forward *args;
  const struct pg_facts *facts;
  const struct pg_scratch *scratch;
  bool products;
  float divisor, high, low;
  int32_t low_half[LEVELS][LANES], high_half[LEVELS][LANES]; /* lanes, for add_by_halves */
  _Alignas(LINE) element staged[STAGED];
  _Alignas(LINE) float sums[PG_PARTIAL_SUMS * CHANNELS + LANES];
  _Alignas(LINE) element outputs[CHANNELS + LANES];
};

_Static_assert(sizeof(struct one_window) <= PG_SCRATCH_METHOD, "scratch memory is too small");

static struct part_vectors parts_of_window(const struct one_window *k) {
  return parts_of_one(&(struct parts){&k->divisor, &k->high, &k->low}, 0);
}

/* --- Planes --- */

/* Deals out cells, the first of them to the first sum. */
static inline __attribute__((always_inline)) void deal_out(const element *cells, int64_t count,
                                                           floats sum[VECTORS]) {
  int64_t i = 0;
  for (; i + PG_PARTIAL_SUMS <= count; i += PG_PARTIAL_SUMS)
    for (int v = 0; v < VECTORS; v++)
      sum[v] = add(sum[v], load_elements(cells + i + (int64_t)v * LANES));
  for (int v = 0; v < VECTORS && i < count; v++, i += LANES)
    sum[v] = add(sum[v],
                 count - i >= LANES ? load_elements(cells + i) : load_part(cells + i, count - i));
}

/* The same for a whole contiguous plane, in parts that begin with the first sum.  Where the task
 * was stopped the sums lack cells, but nobody uses them. */
static inline __attribute__((always_inline)) void deal_out_plane(const struct one_window *k,
                                                                 const element *plane,
                                                                 floats sum[VECTORS]) {
  const int64_t cells = k->facts->cells;
  for (int64_t i = 0; i < cells; i += LOOK_EVERY) {
    if (i > 0 && pg_is_stopped(k->scratch)) return;
    deal_out(plane + i, least(LOOK_EVERY, cells - i), sum);
  }
}

/* The same for a plane that is not contiguous. */
static void deal_out_rows(struct one_window *k, const element *plane, floats sum[VECTORS]) {
  const struct pg_pooling *p = &k->facts->pool;
  const int64_t *s = k->args->in_strides.of;
  int64_t staged = 0;
  for (int64_t d = 0; d < p->d.in; d++)
    for (int64_t h = 0; h < p->h.in; h++) {
      const element *row = plane + d * s[PG_D] + h * s[PG_H];
      for (int64_t w = 0; w < p->w.in; w++) {
        k->staged[staged++] = row[w * s[PG_W]];
        if (staged < STAGED) continue;
        if (pg_is_stopped(k->scratch)) return;
        deal_out(k->staged, staged, sum);
        staged = 0;
      }
    }
  deal_out(k->staged, staged, sum);
}

/* The sums of a plane in one vector. */
static inline floats sums_of_plane(struct one_window *k, const element *plane) {
  floats sum[VECTORS];
  for (int v = 0; v < VECTORS; v++) sum[v] = zeros();
  if (k->facts->in.planes)
    deal_out_plane(k, plane, sum);
  else
    deal_out_rows(k, plane, sum);
  for (int half = VECTORS / 2; half > 0; half /= 2)
    for (int v = 0; v < half; v++) sum[v] = add(sum[v], sum[v + half]);
  return sum[0];
}

/* Up to PG_PARTIAL_SUMS cells are added one after the other. */
static float sum_of_few(const struct one_window *k, const element *plane) {
  const struct pg_pooling *p = &k->facts->pool;
  const int64_t *s = k->args->in_strides.of;
  float sum = 0;
  for (int64_t d = 0; d < p->d.in; d++)
    for (int64_t h = 0; h < p->h.in; h++)
      for (int64_t w = 0; w < p->w.in; w++)
        sum += widen_one(plane[d * s[PG_D] + h * s[PG_H] + w * s[PG_W]]);
  return sum;
}

/* The same for LANES planes that follow each other, of as many cells: they are transposed. */
static floats sums_of_few(const struct one_window *k, const element *planes) {
  const int64_t cells = k->facts->cells;
  floats v[LANES], sum = zeros();
  for (int64_t first = 0; first < cells; first += LANES) {
    const int64_t count = least(LANES, cells - first);
    for (int i = 0; i < LANES; i++)
      v[i] = count == LANES ? load_elements(planes + i * cells + first)
                            : load_part(planes + i * cells + first, count);
    transpose(v);
    for (int64_t i = 0; i < count; i++) sum = add(sum, v[i]);
  }
  return sum;
}

/* Vectors of the sums of one plane each become one vector with a lane for each plane.  On every
 * level two vectors with `planes` planes each become one with both: of each plane the upper half of
 * its lanes is added to the lower half. */
static void begin_halves(struct one_window *k) {
  int level = 0;
  for (int planes = 1; planes < LANES; planes *= 2, level++) {
    const int width = LANES / planes;
    for (int i = 0; i < LANES; i++) {
      const int plane = i / (width / 2), lane = i % (width / 2);
      const int from = plane / planes * LANES + plane % planes * width + lane;
      k->low_half[level][i] = from;
      k->high_half[level][i] = from + width / 2;
    }
  }
}

static inline floats add_by_halves(const struct one_window *k, floats v[LANES]) {
  int level = 0;
  for (int count = LANES / 2; count > 0; count /= 2, level++) {
    const ints low = load_i32(k->low_half[level]), high = load_i32(k->high_half[level]);
    for (int i = 0; i < count; i++)
      v[i] =
          add(permute_two(v[i + i], v[i + i + 1], low), permute_two(v[i + i], v[i + i + 1], high));
  }
  return v[0];
}

static const element *plane_at(const struct one_window *k, int64_t plane) {
  const int64_t c = k->facts->pool.c;
  return (const element *)k->args->in +
         pg_offset(&k->args->in_strides, plane / c, plane % c, 0, 0, 0);
}

/* The sums of `count` planes, in a lane each. */
static floats sums_of_planes(struct one_window *k, int64_t first, int64_t count) {
  if (k->facts->cells <= PG_PARTIAL_SUMS && count == LANES && k->facts->in.all)
    return sums_of_few(k, plane_at(k, first));
  if (k->facts->cells <= PG_PARTIAL_SUMS) {
    for (int64_t i = 0; i < count; i++) k->sums[i] = sum_of_few(k, plane_at(k, first + i));
    return load_part_f32(k->sums, count);
  }
  floats v[LANES];
  const element *plane = plane_at(k, first);
  for (int64_t i = 0; i < LANES; i++) {
    if (i < count && !k->facts->in.all) plane = plane_at(k, first + i);
    v[i] = i < count ? sums_of_plane(k, plane) : zeros();
    plane += k->facts->cells;
  }
  return add_by_halves(k, v);
}

static void store_planes(struct one_window *k, int64_t first, packed v, int64_t count) {
  const int64_t c = k->facts->pool.c;
  element *out = k->args->out;
  if (k->facts->out.all) {
    store_part(out + first, v, count);
    return;
  }
  store_packed(k->outputs, v);
  for (int64_t i = first; i < first + count; i++)
    out[pg_offset(&k->args->out_strides, i / c, i % c, 0, 0, 0)] = k->outputs[i - first];
}

static void make_planes(struct one_window *k, const struct pg_box *b,
                        const struct pg_scratch *scratch) {
  const struct part_vectors parts = parts_of_window(k);
  for (int64_t i = 0; i < b->planes && !pg_is_stopped(scratch); i += LANES) {
    const int64_t count = least(LANES, b->planes - i);
    const floats sums = sums_of_planes(k, b->first + i, count);
    store_planes(k, b->first + i, pack(average(sums, &parts, k->products)), count);
  }
}

/* --- Channels last --- */

/* The cells of a box of channels, and what is prefetched while they are added. */
struct channel_cells {
  const element *first;
  bool contiguous;     /* the channels of all cells of an n follow each other */
  int64_t ahead, step; /* with cell i so many elements from first + ahead + i * step on */
};

/* A box has few of the channels of a cell, and memory is slow where so little is read in one place.
 * So while the boxes of one n are computed, all channels of the next one are prefetched in the
 * order of memory, if the second-level cache has room for them. */
static struct channel_cells cells_of_channels(const struct one_window *k, const struct pg_box *b) {
  const struct pg_pooling *p = &k->facts->pool;
  const int64_t *s = k->args->in_strides.of, cells = k->facts->cells, c = b->first % p->c;
  struct channel_cells of = {.first = plane_at(k, b->first),
                             .contiguous = layout_of(&k->args->in_strides, p, false, true).planes,
                             .ahead = BLOCK * p->c,
                             .step = p->c};
  if (!of.contiguous || cells > PREFETCHED / (int)sizeof(element) / p->c) return of;
  of.ahead = s[PG_N] - c + c * cells;
  of.step = b->planes;
  return of;
}

static const element *cell_at(const struct one_window *k, const struct channel_cells *of,
                              int64_t i) {
  const struct pg_pooling *p = &k->facts->pool;
  if (of->contiguous) return of->first + i * p->c;
  const int64_t row = i / p->w.in;
  return of->first +
         pg_offset(&k->args->in_strides, 0, 0, row / p->h.in, row % p->h.in, i % p->w.in);
}

/* Adds every `parts`-th of some cells, in so many channels from c on, to their sums. */
static inline __attribute__((always_inline)) void add_group(const struct one_window *k,
                                                            const struct channel_cells *of,
                                                            struct pg_range cells, int64_t parts,
                                                            int64_t c, const int64_t channels,
                                                            float *sums) {
  enum { VECTOR = LANES * (int)sizeof(element) }; /* bytes */
  floats sum[GROUP];
  for (int64_t v = 0; v * LANES < channels; v++)
    sum[v] = cells.begin < parts ? zeros() : load_f32(sums + v * LANES);
  for (int64_t i = cells.begin; i < cells.end; i += parts) {
    const element *from = cell_at(k, of, i) + c;
    const element *soon = of->first + of->ahead + i * of->step + c;
    for (int64_t v = 0; v * LANES < channels; v++) {
      if (v * VECTOR % LINE == 0) __builtin_prefetch(soon + v * LANES, 0, 2);
      sum[v] = add(sum[v], channels - v * LANES >= LANES
                               ? load_elements(from + v * LANES)
                               : load_part(from + v * LANES, channels - v * LANES));
    }
  }
  for (int64_t v = 0; v * LANES < channels; v++) store_f32(sums + v * LANES, sum[v]);
}

/* Adds the cells of a box to sums that lie `pitch` places apart.  A few vectors of channels at a
 * time, so that their sums stay in registers for the cells of a block. */
static void add_channels(struct one_window *k, const struct pg_box *b, int64_t pitch,
                         const struct pg_scratch *scratch) {
  enum { CHANNELS_AT_ONCE = GROUP * LANES };
  const struct channel_cells of = cells_of_channels(k, b);
  const int64_t cells = k->facts->cells, channels = b->planes;
  const int64_t parts = cells <= PG_PARTIAL_SUMS ? 1 : PG_PARTIAL_SUMS;
  for (int64_t i = 0; i < cells && !pg_is_stopped(scratch); i += BLOCK)
    for (int64_t part = 0; part < parts && i + part < cells; part++) {
      const struct pg_range some = {i + part, least(i + BLOCK, cells)};
      float *sums = k->sums + part * pitch;
      int64_t c = 0;
      for (; c + CHANNELS_AT_ONCE <= channels; c += CHANNELS_AT_ONCE)
        add_group(k, &of, some, parts, c, CHANNELS_AT_ONCE, sums + c);
      if (c < channels) add_group(k, &of, some, parts, c, channels - c, sums + c);
    }
}

static void make_channels(struct one_window *k, const struct pg_box *b,
                          const struct pg_scratch *scratch) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct part_vectors parts = parts_of_window(k);
  const int64_t channels = b->planes, n = b->first / p->c, c = b->first % p->c;
  const int64_t pitch = round_up(channels);
  element *to = (element *)k->args->out + pg_offset(&k->args->out_strides, n, c, 0, 0, 0);
  add_channels(k, b, pitch, scratch);
  if (k->facts->cells > PG_PARTIAL_SUMS)
    for (int64_t half = PG_PARTIAL_SUMS / 2 * pitch; half >= pitch; half /= 2)
      for (int64_t i = 0; i < half; i += LANES)
        store_f32(k->sums + i, add(load_f32(k->sums + i), load_f32(k->sums + half + i)));
  for (int64_t i = 0; i < channels; i += LANES) {
    const int64_t count = least(LANES, channels - i);
    const floats sum = load_part_f32(k->sums + i, count);
    store_part(to + i, pack(average(sum, &parts, k->products)), count);
  }
}

/* --- The method --- */

static void one_window_items(const void *args, int64_t begin, int64_t end,
                             struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *f = &task->problem.facts;
  const struct pg_pooling *p = &f->pool, grid = pg_output_grid(p);
  struct one_window *k = scratch->room;
  k->args = &task->problem.args.avg_forward;
  k->facts = f;
  k->scratch = scratch;
  k->products = divides_by_products(&task->problem);
  const bool padding = k->args->count_include_pad;
  const int64_t counted = pg_window_extent(&p->d, 0, padding) *
                          pg_window_extent(&p->h, 0, padding) * pg_window_extent(&p->w, 0, padding);
  set_parts((float)(k->args->divisor != 0 ? k->args->divisor : counted), &k->divisor, &k->high,
            &k->low);
  begin_halves(k);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &grid, item);
    if (task->choice.tiling.interleaved)
      make_channels(k, &box, scratch);
    else
      make_planes(k, &box, scratch);
  }
}

static bool one_window_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling grid = pg_output_grid(&f->pool);
  struct pg_tiling t = {.interleaved = f->neighbours, .d = 1, .h = 1, .w = 1};
  if (!pg_is_global(&f->pool)) return false;
  if (f->neighbours)
    t.planes = pg_ceil_div(f->pool.c, pg_ceil_div(f->pool.c, CHANNELS));
  else
    t.planes = most(1, least(f->planes, ITEM / f->cells / LANES * LANES));
  *tiling = pg_tile_boxes(&grid, &t);
  return true;
}

const struct pg_cpu_method VARIANT(avg_forward_one_window) = {
    .name = "one_window", .fits = one_window_fits, .run = one_window_items};
