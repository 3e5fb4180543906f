/* SPDX-License-Identifier: Apache-2.0 */
#include "guarded.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "device.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HIDE(address, bytes) __asan_poison_memory_region(address, bytes)
#define SHOW(address, bytes) __asan_unpoison_memory_region(address, bytes)
#else
#define HIDE(address, bytes) ((void)(address), (void)(bytes))
#define SHOW(address, bytes) ((void)(address), (void)(bytes))
#endif

enum { GUARD = 256, GUARD_BYTE = 0xc3 };

bool guarded_make(struct guarded *g, size_t bytes, int poison) {
  const size_t all = bytes + (size_t)2 * GUARD;
  *g = (struct guarded){.bytes = bytes, .image = malloc(all), .found = malloc(all)};
  if (g->image == NULL || g->found == NULL) return false;
  memset(g->image, GUARD_BYTE, all);
  memset(g->image + GUARD, poison, bytes);
  return true;
}

char *guarded_payload(const struct guarded *g) { return g->image + GUARD; }

char *guarded_found(const struct guarded *g) { return g->found + GUARD; }

static size_t whole(const struct guarded *g) { return g->bytes + (size_t)2 * GUARD; }

/* While the work runs, a sanitizer sees guards of host memory as out of bounds for reads too. */
static void hide_guards(const struct guarded *g) {
  if (!g->on_host) return;
  HIDE(g->device - GUARD, GUARD);
  HIDE(g->device + g->bytes, GUARD);
}

static void show_guards(const struct guarded *g) {
  if (g->on_host) SHOW(g->device - GUARD, whole(g));
}

int guarded_send(struct guarded *g) {
  void *memory = NULL;
  if (g->device == NULL) {
    const int status = aclrtMalloc(&memory, whole(g), ACL_MEM_MALLOC_HUGE_FIRST);
    if (status != ACL_SUCCESS) return status;
    g->device = (char *)memory + GUARD;
    g->on_host = !on_cuda();
  }
  show_guards(g);
  const int status =
      aclrtMemcpy(g->device - GUARD, whole(g), g->image, whole(g), ACL_MEMCPY_HOST_TO_DEVICE);
  hide_guards(g);
  return status;
}

int guarded_fetch(struct guarded *g) {
  show_guards(g);
  return aclrtMemcpy(g->found, whole(g), g->device - GUARD, whole(g), ACL_MEMCPY_DEVICE_TO_HOST);
}

static bool find_difference(const char *a, const char *b, size_t bytes, int64_t start,
                            int64_t *offset) {
  if (memcmp(a, b, bytes) == 0) return false;
  size_t i = 0;
  while (a[i] == b[i]) i++;
  *offset = start + (int64_t)i;
  return true;
}

bool guarded_differs(const struct guarded *g, bool guards_only, int64_t *offset) {
  const size_t end = GUARD + g->bytes;
  if (!guards_only) return find_difference(g->image, g->found, whole(g), -GUARD, offset);
  return find_difference(g->image, g->found, GUARD, -GUARD, offset) ||
         find_difference(g->image + end, g->found + end, GUARD, (int64_t)g->bytes, offset);
}

void guarded_leave(struct guarded *g) {
  if (g->device == NULL) return;
  show_guards(g);
  (void)aclrtFree(g->device - GUARD);
  g->device = NULL;
}

void guarded_free(struct guarded *g) {
  guarded_leave(g);
  free(g->image);
  free(g->found);
  *g = (struct guarded){0};
}

/* --- layouts -----------------------------------------------------------------------------------
 */

/* The axes in the order of the view, slowest first; how many. */
static int view_axes(const struct problem *p, int axes[POOL_AXES]) {
  int rank = 0;
  if (p->batched) axes[rank++] = AXIS_N;
  if (!problem_has_channels_last(p)) axes[rank++] = AXIS_C;
  for (int i = POOL_AXES - problem_spatial(p); i < POOL_AXES; i++) axes[rank++] = i;
  if (problem_has_channels_last(p)) axes[rank++] = AXIS_C;
  return rank;
}

static void move(int *order, int from, int to) {
  const int axis = order[from];
  for (; from < to; from++) order[from] = order[from + 1];
  for (; from > to; from--) order[from] = order[from - 1];
  order[to] = axis;
}

/* The order of the view becomes the order in memory. */
static void permute(enum layout layout, int *order, int rank) {
  int channel = 0;
  while (order[channel] != AXIS_C) channel++;
  if (layout == PERMUTED)
    move(order, channel, channel == rank - 1 ? (order[0] == AXIS_N ? 1 : 0) : rank - 1);
  if (layout == TRANSPOSED) move(order, rank - 1, rank - 2);
}

/* An axis of length 1 may have any stride at all. */
static int64_t idle_stride(enum layout layout, int64_t stride) {
  return layout == GAP ? 977 : layout == OFFSET ? 0 : layout == ROWS ? INT64_C(1) << 61 : stride;
}

static void set_steps(struct tensor_layout *t, enum layout layout, const int *order) {
  int64_t step = layout == GAP ? 2 : 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    const int axis = order[i];
    const bool shared = layout == SCALAR || (layout == EXPAND && axis == AXIS_C);
    t->step[axis] = shared ? 0 : t->size[axis] == 1 ? idle_stride(layout, step) : step;
    if (!shared && t->size[axis] > 1) step *= t->size[axis];
    if (layout == GAP || (layout == ROWS && i == t->rank - 1)) step += 3;
  }
}

/* The container of a mask: so many rows for each plane, one for each cell of a window. */
static void set_mask_sizes(struct tensor_layout *t, const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  t->size[AXIS_N] = p->n;
  t->size[AXIS_C] = p->c;
  t->size[AXIS_D] = 1;
  t->size[AXIS_H] = pool.axis[1].kernel * pool.axis[2].kernel;
  t->size[AXIS_W] = ((p->out[1] * p->out[2] + 15) / 16 + 1) * 32;
}

static void set_sizes(struct tensor_layout *t, const struct problem *p, int tensor) {
  if (tensor == INDICES && problem_is_mask(p)) {
    set_mask_sizes(t, p);
    return;
  }
  const int64_t *spatial = tensor == GRAD_OUT || tensor == INDICES ? p->out : p->in;
  t->size[AXIS_N] = p->n;
  t->size[AXIS_C] = p->c;
  for (int i = 0; i < 3; i++) t->size[AXIS_D + i] = spatial[i];
}

int64_t tensor_cells(const struct tensor_layout *t) {
  int64_t cells = 1;
  for (int i = 0; i < POOL_AXES; i++) cells *= t->size[i];
  return cells;
}

struct tensor_layout tensor_lay_out(const struct problem *p, int tensor) {
  const enum layout layout = p->layout[tensor];
  struct tensor_layout t = {.offset = layout == OFFSET ? 5
                                      : layout == GAP  ? 3
                                                       : 0,
                            .dense = layout == DENSE};
  int axes[POOL_AXES], order[POOL_AXES];
  set_sizes(&t, p, tensor);
  t.rank = view_axes(p, axes);
  memcpy(order, axes, sizeof order);
  permute(layout, order, t.rank);
  set_steps(&t, layout, order);
  for (int i = 0; i < t.rank; i++) {
    t.dims[i] = t.size[axes[i]];
    t.strides[i] = t.step[axes[i]];
  }
  if (tensor_cells(&t) == 0) return t;
  t.elements = t.offset + 1;
  for (int i = 0; i < POOL_AXES; i++) t.elements += (t.size[i] - 1) * t.step[i];
  return t;
}

int64_t tensor_place(const struct tensor_layout *t, int64_t cell) {
  int64_t place = t->offset;
  for (int i = POOL_AXES - 1; i > 0; i--) {
    place += cell % t->size[i] * t->step[i];
    cell /= t->size[i];
  }
  return place + cell * t->step[AXIS_N];
}
