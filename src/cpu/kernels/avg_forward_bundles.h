/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles of small planes, for average-forward `rows` (avg_forward_rows.c).
 *
 * A short row takes as long as one that fills its vectors, and each row takes some time to begin.
 * So LANES small planes are computed together: they are transposed, which makes an image in scratch
 * memory whose LANES channels they are, the method computes that image as if it were channels last,
 * and its outputs are transposed back. */
#ifndef PG_AVG_FORWARD_BUNDLES_H_
#define PG_AVG_FORWARD_BUNDLES_H_

#include "cpu/kernels/avg_forward_windows.h"

enum {
  BUNDLE_PLACES = 1600, /* the most cells, and the most outputs, of a plane of a bundle */
  BUNDLE_ROW = 64       /* the longest rows of cells that bundles are faster at */
};

/* The image that a bundle is computed as: LANES elements for each cell, and for each output. */
struct bundle {
  _Alignas(LINE) element cells[(BUNDLE_PLACES + LANES) * LANES];
  _Alignas(LINE) element outputs[(BUNDLE_PLACES + LANES) * LANES];
};

/* Bundles need contiguous planes, and enough of them to fill more than half of the lanes. */
static bool may_bundle(const struct pg_facts *f) {
  const struct pg_axis *w = &f->pool.w;
  return !f->neighbours && f->in.planes && f->out.planes && f->planes > LANES / 2 &&
         f->cells <= BUNDLE_PLACES && f->outputs <= BUNDLE_PLACES && w->in <= BUNDLE_ROW &&
         f->pool.d.out <= PG_BOX_ROWS && f->pool.h.out <= PG_BOX_ROWS &&
         has_room(w, w->out, LANES, COLUMNS);
}

/* The strides of the cells of that image, or of its outputs. */
static struct pg_strides strides_of_bundle(const struct pg_axis *h, const struct pg_axis *w,
                                           bool outputs) {
  const int64_t row = (outputs ? w->out : w->in) * LANES;
  return (struct pg_strides){{0, 1, (outputs ? h->out : h->in) * row, row, LANES}};
}

/* Finds where the planes of a bundle begin.  Lanes without a plane get the last one once more. */
static void find_planes(const struct pg_strides *s, const struct pg_pooling *p,
                        const struct pg_range *planes, int64_t begin[LANES]) {
  for (int64_t i = 0; i < LANES; i++) {
    const int64_t plane = least(planes->begin + i, planes->end - 1);
    begin[i] = pg_offset(s, plane / p->c, plane % p->c, 0, 0, 0);
  }
}

/* Transposes the cells of a bundle.  The hardware does not prefetch as many planes at once as a
 * bundle has, so those of the next bundle are prefetched here. */
static void bundle_cells(struct bundle *b, const element *in, int64_t cells,
                         const int64_t begin[LANES]) {
  const int64_t next = cells * LANES;
  floats v[LANES];
  int64_t i = 0;
  for (; i + LANES <= cells || (i < cells && cells >= LANES); i += LANES) {
    i = least(i, cells - LANES);
    for (int j = 0; j < LANES; j++) {
      const element *from = in + begin[j] + i;
      __builtin_prefetch(from + next);
      v[j] = load_elements(from);
    }
    transpose(v);
    for (int j = 0; j < LANES; j++) store_packed(b->cells + (i + j) * LANES, pack_exact(v[j]));
  }
  if (i >= cells) return;
  for (int j = 0; j < LANES; j++) v[j] = load_part(in + begin[j], cells);
  transpose(v);
  for (int j = 0; j < LANES; j++) store_packed(b->cells + (int64_t)j * LANES, pack_exact(v[j]));
}

/* Transposes the outputs of a bundle back, so many of so many planes; each plane has its own place
 * that they go to. */
static void store_lanes(const element *from, element *to[LANES], int64_t planes, int64_t count) {
  for (int64_t i = 0; i < count; i += LANES) {
    floats v[LANES];
    if (count >= LANES) i = least(i, count - LANES);
    for (int j = 0; j < LANES; j++) v[j] = load_elements(from + (i + j) * LANES);
    transpose(v);
    for (int64_t j = 0; j < planes; j++) {
      if (count >= LANES)
        store_packed(to[j] + i, pack_exact(v[j]));
      else
        store_part(to[j] + i, pack_exact(v[j]), count);
    }
  }
}

/* Writes the outputs of a bundle to their planes.  Those that go past the caches must be written in
 * the order of memory, so they are first put together where the cells of the bundle were. */
static void write_bundle(struct bundle *b, element *out, int64_t outputs, int64_t planes,
                         const int64_t begin[LANES], bool past) {
  element *to[LANES];
  for (int64_t i = 0; i < LANES; i++) to[i] = past ? b->cells + i * outputs : out + begin[i];
  store_lanes(b->outputs, to, planes, outputs);
  if (past) copy_bytes(out + begin[0], b->cells, planes * outputs * (int64_t)sizeof(element), true);
}

#endif
