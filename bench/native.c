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

/* One copy of the data. What is read lies in one piece, and so does what is written: for the twin.
 */
struct set {
  char *read, *written;
  struct operator_arguments arguments;
};

struct bench_row {
  struct problem problem;
  struct tensor_layout layout[POOL_TENSORS];
  struct bench_facts facts;
  struct set *set;
  int64_t *wide_index;
  size_t at[POOL_TENSORS];        /* where a tensor begins within its piece */
  size_t read_bytes, write_bytes; /* of the two pieces */
  void *untouched;                /* for a tensor whose values nobody needs; on the host it costs
                                     address space only */
  void *workspace;
  uint64_t workspace_size;
  aclIntArray *array[POOL_ARRAYS]; /* all sets have the same */
  aclrtStream stream;
  double *kept;
  char *fetched; /* as many elements */
  int64_t kept_elements;
  const char *method; /* that calls use; NULL: the first */
};

/* --- facts ------------------------------------------------------------------------------------
 */

/* The tensor whose elements are compared. */
static int result_of(const struct problem *p) { return problem_is_forward(p) ? GRAD_OUT : GRAD_IN; }

static void set_windows(struct bench_facts *f, const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  for (int i = 0; i < 3; i++) {
    f->kernel[i] = pool.axis[i].kernel;
    f->stride[i] = pool.axis[i].stride;
    f->pad[i] = pool.axis[i].pad;
    f->dilation[i] = pool.axis[i].dilation;
  }
}

/* A peer's indices lie as ours do; where we have a mask or none at all, they lie in planes or as
 * the outputs do. */
static void set_indices(struct bench_facts *f, const struct problem *p,
                        const struct tensor_layout *layout) {
  struct problem planar = *p;
  planar.layout[GRAD_OUT] = DENSE;
  const struct tensor_layout dense = tensor_lay_out(&planar, GRAD_OUT);
  const struct tensor_layout *t = problem_is_mask(p)       ? &dense
                                  : problem_has_indices(p) ? &layout[INDICES]
                                                           : &layout[GRAD_OUT];
  f->index_bytes = problem_is_mask(p) ? 4 : problem_has_indices(p) ? p->index_bytes : 0;
  f->index_elements = t->elements;
  memcpy(f->index_step, t->step, sizeof f->index_step);
}

static void set_facts(struct bench_facts *f, const struct problem *p,
                      const struct tensor_layout *layout) {
  const struct tensor_layout *cells = &layout[problem_is_forward(p) ? SELF : GRAD_IN];
  const struct tensor_layout *outputs = &layout[GRAD_OUT];
  *f = (struct bench_facts){.forward = problem_is_forward(p),
                            .max = problem_is_max(p),
                            .sliding = problem_is_sliding(p),
                            .type = p->type,
                            .spatial = problem_spatial(p),
                            .ceil = p->ceil,
                            .include_pad = p->include_pad,
                            .divisor = p->divisor,
                            .in_elements = cells->elements,
                            .out_elements = outputs->elements,
                            .read_bytes = data_moved(p, layout, READ),
                            .write_bytes = data_moved(p, layout, WRITTEN)};
  set_windows(f, p);
  set_indices(f, p, layout);
  memcpy(f->in, cells->size, sizeof f->in);
  memcpy(f->in_step, cells->step, sizeof f->in_step);
  memcpy(f->out, outputs->size, sizeof f->out);
  memcpy(f->out_step, outputs->step, sizeof f->out_step);
}

static bool read_line(const char *line, struct problem *p, struct tensor_layout *layout,
                      struct bench_facts *facts, char *why) {
  if (!problem_parse(line, p, why)) return false;
  if (p->type >= FLOAT_FORMATS) {
    snprintf(why, BENCH_TEXT, "integers are no benchmark row");
    return false;
  }
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
  if (on_host)
    twin_fill(s->written, row->write_bytes, POISON);
  else
    (void)aclrtMemset(s->written, row->write_bytes, POISON, row->write_bytes);
}

static char *address_of(const struct bench_row *row, const struct set *s, int tensor) {
  switch (problem_role(&row->problem, tensor)) {
    case READ:
      return s->read + row->at[tensor];
    case WRITTEN:
      return s->written + row->at[tensor];
    case SHAPE_ONLY:
      return row->untouched;
    default:
      return NULL;
  }
}

static bool make_set(struct bench_row *row, struct set *s) {
  const struct problem *p = &row->problem;
  void *read, *written;
  if (!allocate(&read, (int64_t)row->read_bytes)) return false;
  s->read = read;
  if (!allocate(&written, (int64_t)row->write_bytes)) return false;
  s->written = written;
  aclTensor *tensor[POOL_TENSORS];
  for (int i = 0; i < POOL_TENSORS; i++)
    tensor[i] = problem_role(p, i) == ABSENT_TENSOR
                    ? NULL
                    : operator_tensor(p, &row->layout[i], i, address_of(row, s, i));
  s->arguments = operator_arguments(p, tensor, row->array);
  poison(row, s);
  return true;
}

/* The first set's data, made where the host can reach it; NULL when memory is short. */
static char *make_data(struct bench_row *row, int threads) {
  char *const to = on_host ? row->set[0].read : malloc(row->read_bytes + 1);
  if (to == NULL) return NULL;
  struct data_places places = {.wide_index = row->wide_index};
  for (int i = 0; i < POOL_TENSORS; i++)
    if (problem_role(&row->problem, i) == READ) places.of[i] = to + row->at[i];
  data_fill(&row->problem, row->layout, &places, threads);
  return to;
}

static bool fill_sets(struct bench_row *row, int threads) {
  const size_t bytes = row->read_bytes;
  char *const data = make_data(row, threads);
  bool good = data != NULL;
  for (int64_t i = 0; good && i < row->facts.sets; i++)
    good = aclrtMemcpy(row->set[i].read, bytes, i == 0 ? data : row->set[0].read, bytes,
                       ACL_MEMCPY_DEFAULT) == ACL_SUCCESS;
  if (!on_host) free(data);
  return good;
}

/* Puts the tensors of a role behind each other, each at the begin of a line; how many bytes. */
static size_t place_tensors(struct bench_row *row, enum tensor_role role) {
  size_t end = 0;
  for (int i = 0; i < POOL_TENSORS; i++) {
    if (problem_role(&row->problem, i) != role) continue;
    row->at[i] = (end + 63) / 64 * 64;
    end = row->at[i] + (size_t)data_bytes(&row->problem, &row->layout[i], i);
  }
  return end;
}

static bool make_sets(struct bench_row *row, int threads, bool for_peers) {
  const struct bench_facts *f = &row->facts;
  const int64_t untouched = data_bytes(&row->problem, &row->layout[SELF], SELF);
  row->read_bytes = place_tensors(row, READ);
  row->write_bytes = place_tensors(row, WRITTEN);
  row->set = calloc((size_t)f->sets, sizeof *row->set);
  row->kept = calloc(KEPT, sizeof *row->kept);
  row->fetched = malloc(KEPT * sizeof(double));
  if (row->set == NULL || row->kept == NULL || row->fetched == NULL) return false;
  if (on_host && !f->forward && !allocate(&row->untouched, untouched)) return false;
  if (f->max && f->index_bytes != 8 && for_peers && on_host) {
    row->wide_index = malloc((size_t)f->index_elements * sizeof *row->wide_index);
    if (row->wide_index == NULL) return false;
  }
  for (int64_t i = 0; i < f->sets; i++)
    if (!make_set(row, &row->set[i])) return false;
  return fill_sets(row, threads);
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
    release(row->set[i].read);
    release(row->set[i].written);
    for (int t = 0; t < POOL_TENSORS; t++)
      if (row->set[i].arguments.tensor[t] != NULL)
        (void)aclDestroyTensor(row->set[i].arguments.tensor[t]);
  }
  release(row->untouched);
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
    case BENCH_OUTPUTS:
      return address_of(row, s, GRAD_OUT);
    case BENCH_INDICES:
      return address_of(row, s, INDICES);
    case BENCH_CELLS:
      return address_of(row, s, row->facts.forward ? SELF : GRAD_IN);
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
  return twin_run(row->set[set].read, (size_t)row->facts.read_bytes, row->set[set].written,
                  (size_t)row->facts.write_bytes, calls, threads, streaming);
}

/* --- what came out ----------------------------------------------------------------------------
 */

void bench_poison(struct bench_row *row, int64_t set) { poison(row, &row->set[set]); }

static const char *result_at(const struct bench_row *row, int64_t set) {
  return address_of(row, &row->set[set], result_of(&row->problem));
}

static int64_t result_elements(const struct bench_row *row) {
  return row->layout[result_of(&row->problem)].elements;
}

int64_t bench_unwritten(const struct bench_row *row, int64_t set) {
  const size_t bytes = float_formats[row->problem.type].bytes;
  const char *at = result_at(row, set);
  char poison[8];
  int64_t count = 0;
  memset(poison, POISON, sizeof poison);
  for (int64_t i = 0; i < result_elements(row); i++, at += bytes)
    count += memcmp(at, poison, bytes) == 0;
  return count;
}

/* The first elements of the result, within the host's reach. */
static const char *first_elements(const struct bench_row *row, int64_t set) {
  const size_t bytes = (size_t)row->kept_elements * float_formats[row->problem.type].bytes;
  const char *const result = result_at(row, set);
  if (on_host) return result;
  (void)aclrtMemcpy(row->fetched, bytes, result, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
  return row->fetched;
}

static double element_at(const struct bench_row *row, const char *elements, int64_t i) {
  const struct float_format *format = &float_formats[row->problem.type];
  return float_decode(format, elements + i * (int64_t)format->bytes);
}

void bench_keep(struct bench_row *row, int64_t set) {
  const int64_t all = result_elements(row);
  row->kept_elements = all < KEPT ? all : KEPT;
  const char *const elements = first_elements(row, set);
  for (int64_t i = 0; i < row->kept_elements; i++) row->kept[i] = element_at(row, elements, i);
}

double bench_difference(const struct bench_row *row, int64_t set) {
  double largest = 0, difference = 0;
  const char *const elements = first_elements(row, set);
  for (int64_t i = 0; i < row->kept_elements; i++) {
    const double found = fabs(element_at(row, elements, i) - row->kept[i]),
                 size = fabs(row->kept[i]);
    if (!(found <= difference)) difference = found; /* a NaN stays */
    if (size > largest) largest = size;
  }
  return largest > 0 ? difference / largest : difference;
}
