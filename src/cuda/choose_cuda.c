/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/choose_cuda.h"

#include "kernels/tiling.h"

enum { BOX_CELLS = 4096, WIDE_BOX_CELLS = 8192, STAGED = 8192, LEAST_PLANES = 64 };

const char pg_cuda_one_window[] = "repeat";

static struct pg_tiling tile_max(const struct pg_facts *facts) {
  const struct pg_pooling *p = &facts->pool;
  if (facts->channels_last) return pg_tile_interleaved(facts, BOX_CELLS / 2, STAGED);
  return pg_tile_flat(p, p->w.in > BOX_CELLS / 4 ? WIDE_BOX_CELLS : BOX_CELLS);
}

/* Where windows overlap, a box reads more outputs than it has cells, a square one the fewest. */
static struct pg_tiling tile_avg(const struct pg_facts *facts) {
  enum { SQUARE = 128, FROM = 256 };
  const struct pg_pooling *p = &facts->pool;
  if (facts->channels_last) return pg_tile_interleaved(facts, BOX_CELLS, STAGED);
  if (p->w.in <= FROM || p->w.kernel <= p->w.stride) return pg_tile_flat(p, BOX_CELLS);
  return pg_tile_square(p, BOX_CELLS, SQUARE);
}

static bool is_one_window(const struct pg_facts *f) {
  return pg_is_one_window(&f->pool.d) && pg_is_one_window(&f->pool.h) &&
         pg_is_one_window(&f->pool.w) && f->in.planes && f->planes >= LEAST_PLANES;
}

/* The kernels see the windows as the operator gave them. */
bool pg_cuda_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice) {
  struct pg_facts facts = problem->facts;
  *choice = (struct pg_choice){.name = "fill"};
  if (problem->kernel == PG_FILL) {
    choice->items = problem->args.fill.count;
    return skip == 0;
  }
  if (problem->kernel == PG_MAX_BACKWARD) {
    facts.pool = problem->args.max_backward.pool;
    choice->tiling = tile_max(&facts);
    choice->name = choice->tiling.interleaved ? "scatter_last" : "scatter";
  } else {
    facts.pool = problem->args.avg_backward.pool;
    choice->tiling = tile_avg(&facts);
    choice->name = is_one_window(&facts)        ? pg_cuda_one_window
                   : choice->tiling.interleaved ? "spread_last"
                                                : "spread";
  }
  choice->method = choice->name;
  choice->items = pg_tiling_items(&choice->tiling);
  if (problem->kernel == PG_MAX_BACKWARD && pg_tiling_cuts(&choice->tiling))
    choice->workspace_bytes = choice->items * (int64_t)sizeof(int32_t);
  return skip == 0;
}
