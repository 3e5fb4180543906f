/* SPDX-License-Identifier: Apache-2.0 */
/* Max-forward in vectors: keeping the greatest cell of each lane with its position, and writing
 * what was found.
 *
 * NaNs are rare, and their rule takes twice as many instructions.  So cells are first looked at as
 * if there were none, which shows whether there are; if so, they are looked at once more, with
 * care. */
#ifndef PG_MAX_FORWARD_KEEP_H_
#define PG_MAX_FORWARD_KEEP_H_

#include "cpu/kernels/rows.h"
#include "cpu/kernels/slab_writer.h"
#include "cpu/kernels/specialised.h"
#include "cpu/method.h"

/* What is looked at: values alone, values and positions, both and NaNs as well, or keys, which are
 * positions with an element above them (max_forward_keys.h). */
enum care { VALUES, POSITIONS, CAREFUL, KEYS };

/* The greatest cells so far, and where they are in their planes. */
struct greatest {
  floats v;
  ints at;
};

/* Does a cell replace the greatest so far, whichever of them comes first? */
static inline truths replaces_carefully(const struct greatest *g, floats x, ints at) {
  const truths later = either(is_equal(g->v, g->v), is_less_i(g->at, at));
  return either(is_ahead(x, at, g->v, g->at), both(is_unordered(x, x), later));
}

static inline void replace(struct greatest *g, truths where, floats x, ints at) {
  g->v = choose(where, x, g->v);
  g->at = choose_i(where, at, g->at);
}

/* Looks at cells that come behind all that were looked at.  Says where there was a NaN, unless this
 * is done with care. */
static inline SPECIALISED truths look_at_next(struct greatest *g, floats x, ints at,
                                              const enum care care) {
  if (care == CAREFUL) {
    replace(g, replaces_carefully(g, x, at), x, at);
    return none();
  }
  const truths strange = is_unordered(x, g->v);
  if (care == POSITIONS) g->at = choose_i(is_greater(x, g->v), at, g->at);
  g->v = greater_of(x, g->v);
  return strange;
}

/* The same for cells that may come before others that were looked at.  Of two zeros the first one
 * counts, so where there are no positions there must be no -0. */
static inline SPECIALISED void look_at_any(struct greatest *g, floats x, ints at,
                                           const enum care care) {
  if (care == KEYS)
    g->at = greater_i(at, g->at);
  else if (care == VALUES)
    g->v = greater_of(x, g->v);
  else if (care == POSITIONS)
    replace(g, is_ahead(x, at, g->v, g->at), x, at);
  else
    replace(g, replaces_carefully(g, x, at), x, at);
}

/* --- Writing --- */

struct results {
  const struct pg_max_forward *args;
  const struct pg_pooling *pool;
  bool nontemporal;
  struct slab_writer out, index;
};

/* Where some results are put; whole vectors may be stored beyond the last. */
struct place {
  element *out;
  void *index;
};

static inline void results_begin(struct results *r, const struct pg_problem *problem) {
  const struct pg_facts *f = &problem->facts;
  r->args = &problem->args.max_forward;
  r->pool = &f->pool;
  r->nontemporal = pg_prefers_nontemporal(f->bytes - f->grad_in_bytes);
  slab_begin(&r->out, r->nontemporal);
  slab_begin(&r->index, r->nontemporal);
}

static inline void results_end(struct results *r) {
  slab_flush(&r->out);
  slab_flush(&r->index);
  if (r->nontemporal) fence_nontemporal();
}

/* The place of results that belong at these offsets in their tensors and follow each other there:
 * at most SLAB_ELEMENTS / 4. */
static inline struct place results_place(struct results *r, int64_t out, int64_t index) {
  const struct pg_max_forward *a = r->args;
  struct place to;
  to.out = (element *)(void *)slab_place(&r->out, (element *)a->out + out);
  to.index = to.out; /* nothing is put there if nobody wants positions */
  if (a->index_bytes > 0)
    to.index = slab_place(&r->index, (char *)a->index + index * a->index_bytes);
  return to;
}

/* To be called when so many results are in their place. */
static inline void results_advance(struct results *r, int64_t count) {
  slab_advance(&r->out, count * (int64_t)sizeof(element));
  if (r->args->index_bytes > 0) slab_advance(&r->index, count * r->args->index_bytes);
}

/* Puts a vector of results, from the i-th on, in their place. */
static inline SPECIALISED void put_results(const struct place *to, int64_t i,
                                           const struct greatest *g, const int index_bytes) {
  store_packed(to->out + i, pack_exact(g->v));
  if (index_bytes == 4) store_i32((int32_t *)to->index + i, g->at);
  if (index_bytes == 8) store_i64((int64_t *)to->index + i, g->at);
}

/* How far the cell at a position is from the begin of its plane. */
static inline int64_t cell_offset(const struct results *r, int64_t position) {
  const int64_t w = position % r->pool->w.in, row = position / r->pool->w.in;
  return pg_offset(&r->args->in_strides, 0, 0, row / r->pool->h.in, row % r->pool->h.in, w);
}

/* A NaN of 16 bits may lose bits when it is widened and narrowed, so it is copied. */
static inline void copy_if_nan(const struct results *r, element *to, const element *plane,
                               int64_t position) {
  if (!ELEMENT_IS_FLOAT && widen_one(*to) != widen_one(*to)) *to = plane[cell_offset(r, position)];
}

#endif
