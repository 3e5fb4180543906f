/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: a problem, its buffers, and timed calls of it through the public API. */
#include "native.h"
#include "poolgrad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "device.h"
#include "float_format.h"
#include "operator_call.h"

enum { POISON = 0xff, KEPT = 1 << 18 };

static bool on_host; /* device memory is the host's as well */

/* One copy of the data. gradOutput and indices lie behind each other, for the twin to read. */
struct set {
  char *inputs, *grad_in;
  struct operator_arguments arguments;
};

struct bench_row {
  struct problem problem;
  struct tensor_layout layout[POOL_TENSORS];
  struct bench_facts facts;
  struct set *set;
  int64_t *wide_index;
  size_t index_at; /* where indices begin within the inputs */
  void *self;      /* never touched, so on the host it costs address space only */
  void *workspace;
  uint64_t workspace_size;
  aclIntArray *array[POOL_ARRAYS]; /* all sets have the same */
  aclrtStream stream;
  double *kept;
  char *fetched; /* as many cells */
  int64_t kept_cells;
  const char *method; /* that calls use; NULL: the first */
};

/* --- facts ------------------------------------------------------------------------------------
 */

static size_t element_bytes(const struct problem *p, int tensor) {
  return tensor == INDICES ? (size_t)p->index_bytes : float_formats[p->type].bytes;
}

static int64_t tensor_bytes(const struct problem *p, const struct tensor_layout *t, int tensor) {
  if (tensor == INDICES && !problem_is_max(p)) return 0;
  return t->elements * (int64_t)element_bytes(p, tensor);
}

static void set_facts(struct bench_facts *f, const struct problem *p,
                      const struct tensor_layout *layout) {
  const struct reference_pooling pool = problem_pooling(p);
  *f = (struct bench_facts){.op = p->op,
                            .type = p->type,
                            .index_bytes = p->index_bytes,
                            .spatial = problem_spatial(p),
                            .ceil = p->ceil,
                            .include_pad = p->include_pad,
                            .divisor = p->divisor};
  for (int i = 0; i < 2; i++) {
    f->kernel[i] = pool.axis[1 + i].kernel;
    f->stride[i] = pool.axis[1 + i].stride;
    f->pad[i] = pool.axis[1 + i].pad;
    f->dilation[i] = pool.axis[1 + i].dilation;
  }
  for (int i = 0; i < POOL_AXES; i++) {
    f->in[i] = layout[GRAD_IN].size[i];
    f->out[i] = layout[GRAD_OUT].size[i];
    f->grad_out_step[i] = layout[GRAD_OUT].step[i];
    f->index_step[i] = layout[INDICES].step[i];
    f->grad_in_step[i] = layout[GRAD_IN].step[i];
  }
  f->grad_out_elements = layout[GRAD_OUT].elements;
  f->index_elements = layout[INDICES].elements;
  f->grad_in_elements = layout[GRAD_IN].elements;
  f->read_bytes =
      tensor_bytes(p, &layout[GRAD_OUT], GRAD_OUT) + tensor_bytes(p, &layout[INDICES], INDICES);
  f->write_bytes = tensor_bytes(p, &layout[GRAD_IN], GRAD_IN);
}

static bool read_line(const char *line, struct problem *p, struct tensor_layout *layout,
                      struct bench_facts *facts, char *why) {
  if (!problem_parse(line, p, why)) return false;
  for (int i = 0; i < POOL_TENSORS; i++) {
    layout[i] = tensor_lay_out(p, i);
    if (layout[i].offset == 0) continue;
    snprintf(why, BENCH_TEXT, "a tensor with an offset is no benchmark row");
    return false;
  }
  set_facts(facts, p, layout);
  return true;
}

int bench_facts_of(const char *line, struct bench_facts *facts, char *why) {
  struct problem p;
  struct tensor_layout layout[POOL_TENSORS];
  return read_line(line, &p, layout, facts, why) ? 0 : -1;
}

/* --- opening ----------------------------------------------------------------------------------
 */

static const char *recent(void) {
  const char *text = aclGetRecentErrMsg();
  return text == NULL ? "(no sentence)" : text;
}

static bool start_device(struct bench_row *row, char *why) {
  static bool started;
  if (!started && (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS)) {
    snprintf(why, BENCH_TEXT, "%.500s", recent());
    return false;
  }
  started = true;
  on_host = !device_is_cuda(0);
  return aclrtCreateStream(&row->stream) == ACL_SUCCESS;
}

static bool allocate(void **memory, int64_t bytes) {
  const size_t size = bytes < 64 ? 64 : (size_t)bytes;
  return aclrtMalloc(memory, size, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS;
}

static void poison(const struct bench_row *row, const struct set *s) {
  const size_t bytes = (size_t)row->facts.write_bytes;
  if (on_host)
    twin_fill(s->grad_in, bytes, POISON);
  else
    (void)aclrtMemset(s->grad_in, bytes, POISON, bytes);
}

static bool make_set(struct bench_row *row, struct set *s) {
  void *inputs, *grad_in;
  const int64_t indices = tensor_bytes(&row->problem, &row->layout[INDICES], INDICES);
  if (!allocate(&inputs, (int64_t)row->index_at + indices)) return false;
  s->inputs = inputs;
  if (!allocate(&grad_in, row->facts.write_bytes)) return false;
  s->grad_in = grad_in;
  void *const address[POOL_TENSORS] = {[GRAD_OUT] = s->inputs,
                                       [SELF] = row->self,
                                       [INDICES] = s->inputs + row->index_at,
                                       [GRAD_IN] = s->grad_in};
  aclTensor *tensor[POOL_TENSORS];
  for (int i = 0; i < POOL_TENSORS; i++)
    tensor[i] = operator_tensor(&row->problem, &row->layout[i], i, address[i]);
  s->arguments = operator_arguments(&row->problem, tensor, row->array);
  poison(row, s);
  return true;
}

/* The first set's data, made where the host can reach it; NULL when memory is short. */
static char *make_data(struct bench_row *row, size_t bytes, int threads) {
  const bool max = problem_is_max(&row->problem);
  char *const to = on_host ? row->set[0].inputs : malloc(bytes + 1);
  if (to != NULL)
    data_fill(&row->problem, row->layout, to, max ? to + row->index_at : NULL, row->wide_index,
              threads);
  return to;
}

static bool fill_sets(struct bench_row *row, size_t bytes, int threads) {
  char *const data = make_data(row, bytes, threads);
  bool good = data != NULL;
  for (int64_t i = 0; good && i < row->facts.sets; i++)
    good = aclrtMemcpy(row->set[i].inputs, bytes, i == 0 ? data : row->set[0].inputs, bytes,
                       ACL_MEMCPY_DEFAULT) == ACL_SUCCESS;
  if (!on_host) free(data);
  return good;
}

static bool make_sets(struct bench_row *row, int threads, bool for_peers) {
  const struct problem *p = &row->problem;
  const int64_t indices = tensor_bytes(p, &row->layout[INDICES], INDICES);
  row->index_at = ((size_t)tensor_bytes(p, &row->layout[GRAD_OUT], GRAD_OUT) + 63) / 64 * 64;
  row->set = calloc((size_t)row->facts.sets, sizeof *row->set);
  row->kept = calloc(KEPT, sizeof *row->kept);
  row->fetched = malloc(KEPT * sizeof(double));
  if (row->set == NULL || row->kept == NULL || row->fetched == NULL) return false;
  if (on_host && !allocate(&row->self, row->facts.write_bytes)) return false;
  if (indices > 0 && p->index_bytes == 4 && for_peers && on_host) {
    row->wide_index = malloc((size_t)indices * 2);
    if (row->wide_index == NULL) return false;
  }
  for (int64_t i = 0; i < row->facts.sets; i++)
    if (!make_set(row, &row->set[i])) return false;
  return fill_sets(row, row->index_at + (size_t)indices, threads);
}

struct bench_row *bench_open(const char *line, int64_t sets, int threads, int for_peers,
                             char *why) {
  struct bench_row *row = calloc(1, sizeof *row);
  if (row == NULL) return NULL;
  why[0] = '\0';
  bool good = read_line(line, &row->problem, row->layout, &row->facts, why);
  row->facts.sets = sets;
  good = good && start_device(row, why);
  for (int i = 0; good && i < POOL_ARRAYS; i++) row->array[i] = operator_array(&row->problem, i);
  good = good && make_sets(row, threads, for_peers != 0);
  if (!good) {
    if (why[0] == '\0') snprintf(why, BENCH_TEXT, "no memory for this row");
    bench_close(row);
    return NULL;
  }
  return row;
}

static void release(void *memory) {
  if (memory != NULL) (void)aclrtFree(memory);
}

void bench_close(struct bench_row *row) {
  for (int64_t i = 0; row->set != NULL && i < row->facts.sets; i++) {
    release(row->set[i].inputs);
    release(row->set[i].grad_in);
    for (int t = 0; t < POOL_TENSORS; t++) (void)aclDestroyTensor(row->set[i].arguments.tensor[t]);
  }
  release(row->self);
  release(row->workspace);
  for (int i = 0; i < POOL_ARRAYS; i++) (void)aclDestroyIntArray(row->array[i]);
  if (row->stream != NULL) (void)aclrtDestroyStream(row->stream);
  free(row->set);
  free(row->wide_index);
  free(row->kept);
  free(row->fetched);
  free(row);
}

void *bench_address(const struct bench_row *row, int64_t set, int tensor) {
  const struct set *s = &row->set[set];
  switch (tensor) {
    case BENCH_GRAD_OUT:
      return s->inputs;
    case BENCH_INDICES:
      return s->inputs + row->index_at;
    case BENCH_GRAD_IN:
      return s->grad_in;
    default:
      return row->wide_index;
  }
}

void bench_field(const struct bench_row *row, void *to) {
  data_field(&row->problem, &row->layout[GRAD_IN], to);
}

/* --- the call ---------------------------------------------------------------------------------
 */

/* A program that calls an operator often keeps its workspace: only a larger one is made anew. */
static bool has_workspace(struct bench_row *row, uint64_t size) {
  if (size <= row->workspace_size) return true;
  release(row->workspace);
  row->workspace_size = size;
  return allocate(&row->workspace, (int64_t)size);
}

static const char *backend(void) { return on_host ? "cpu" : "cuda"; }

const char *bench_method(struct bench_row *row, int i) {
  uint64_t size = 0;
  aclOpExecutor *executor = NULL;
  const struct operator_arguments *a = &row->set[0].arguments;
  if (operator_calls[row->problem.op].first(a, &size, &executor) != 0) return NULL;
  const char *name = poolgrad_method(executor, backend(), i);
  (void)aclDestroyAclOpExecutor(executor);
  return name;
}

void bench_set_method(struct bench_row *row, int i) {
  row->method = i == 0 ? NULL : bench_method(row, i);
}

static bool enqueue(struct bench_row *row, const struct set *s) {
  const struct operator_call *call = &operator_calls[row->problem.op];
  uint64_t size = 0;
  aclOpExecutor *executor = NULL;
  if (call->first(&s->arguments, &size, &executor) != 0) return false;
  if (row->method != NULL && poolgrad_use_method(executor, backend(), row->method, &size) != 0)
    return false;
  return has_workspace(row, size) && call->second(row->workspace, size, executor, row->stream) == 0;
}

int bench_enqueue(void *row, int64_t set) {
  struct bench_row *const r = row;
  return enqueue(r, &r->set[set]) ? 0 : -1;
}

void *bench_stream(const struct bench_row *row) { return row->stream; }

double bench_host(struct bench_row *row, int64_t set, int calls, char *why) {
  bool good = true;
  const double start = bench_now_us();
  for (int i = 0; good && i < calls; i++) good = enqueue(row, &row->set[set]);
  const double us = bench_now_us() - start;
  if (good && aclrtSynchronizeStream(row->stream) == ACL_SUCCESS) return us / calls;
  snprintf(why, BENCH_TEXT, "%.500s", recent());
  return -1;
}

double bench_call(struct bench_row *row, int64_t set, int calls, int depth, char *why) {
  const double start = bench_now_us();
  for (int i = 0; i < calls; i++) {
    for (int d = 0; d < depth; d++)
      if (!enqueue(row, &row->set[set])) {
        snprintf(why, BENCH_TEXT, "%.500s", recent());
        return -1;
      }
    if (aclrtSynchronizeStream(row->stream) != ACL_SUCCESS) {
      snprintf(why, BENCH_TEXT, "%.500s", recent());
      return -1;
    }
  }
  return (bench_now_us() - start) / calls / depth;
}

double bench_twin(const struct bench_row *row, int64_t set, int calls, int threads, int streaming) {
  return twin_run(row->set[set].inputs, (size_t)row->facts.read_bytes, row->set[set].grad_in,
                  (size_t)row->facts.write_bytes, calls, threads, streaming);
}

/* --- what came out ----------------------------------------------------------------------------
 */

void bench_poison(struct bench_row *row, int64_t set) { poison(row, &row->set[set]); }

int64_t bench_unwritten(const struct bench_row *row, int64_t set) {
  const size_t bytes = element_bytes(&row->problem, GRAD_IN);
  const char *at = row->set[set].grad_in;
  char poison[8];
  int64_t count = 0;
  memset(poison, POISON, sizeof poison);
  for (int64_t i = 0; i < row->facts.grad_in_elements; i++, at += bytes)
    count += memcmp(at, poison, bytes) == 0;
  return count;
}

/* The first cells of gradInput, within the host's reach. */
static const char *first_cells(const struct bench_row *row, int64_t set) {
  const size_t bytes = (size_t)row->kept_cells * element_bytes(&row->problem, GRAD_IN);
  const char *const cells = row->set[set].grad_in;
  if (on_host) return cells;
  (void)aclrtMemcpy(row->fetched, bytes, cells, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
  return row->fetched;
}

static double cell_at(const struct bench_row *row, const char *cells, int64_t i) {
  const struct float_format *format = &float_formats[row->problem.type];
  return float_decode(format, cells + i * (int64_t)format->bytes);
}

void bench_keep(struct bench_row *row, int64_t set) {
  const int64_t all = row->facts.grad_in_elements;
  row->kept_cells = all < KEPT ? all : KEPT;
  const char *const cells = first_cells(row, set);
  for (int64_t i = 0; i < row->kept_cells; i++) row->kept[i] = cell_at(row, cells, i);
}

double bench_difference(const struct bench_row *row, int64_t set) {
  double largest = 0, difference = 0;
  const char *const cells = first_cells(row, set);
  for (int64_t i = 0; i < row->kept_cells; i++) {
    const double found = fabs(cell_at(row, cells, i) - row->kept[i]), size = fabs(row->kept[i]);
    if (!(found <= difference)) difference = found; /* a NaN stays */
    if (size > largest) largest = size;
  }
  return largest > 0 ? difference / largest : difference;
}
