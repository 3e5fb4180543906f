/* SPDX-License-Identifier: Apache-2.0 */
/* Forward, then backward with what the forward found, for each of the nine pairs of operators. The
 * gradient of every cell must equal the finite difference
 *
 *     (L(cells + h in that cell) - L(cells - h in that cell)) / 2h,   L = sum of gradients *
 * outputs
 *
 * Equal is meant to the bit: cells are whole numbers and all different, h is a quarter and windows
 * hold 4 or 8 cells, so that no maximum changes its place and nothing is rounded. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_ops_nn.h"

#define CHECK(call)                                                     \
  do {                                                                  \
    const aclError status_ = (call);                                    \
    if (status_ != ACL_SUCCESS) {                                       \
      const char *why_ = aclGetRecentErrMsg();                          \
      fprintf(stderr, "%s: %d %s\n", #call, status_, why_ ? why_ : ""); \
      return 1;                                                         \
    }                                                                   \
  } while (0)

/* Both phases of an operator with these arguments, and the wait for its result. */
#define RUN(name, ...)                                                                  \
  do {                                                                                  \
    uint64_t bytes_;                                                                    \
    aclOpExecutor *executor_;                                                           \
    void *workspace_ = NULL;                                                            \
    CHECK(name##GetWorkspaceSize(__VA_ARGS__, &bytes_, &executor_));                    \
    if (bytes_ > 0) CHECK(aclrtMalloc(&workspace_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST)); \
    CHECK(name(workspace_, bytes_, executor_, NULL));                                   \
    CHECK(aclrtSynchronizeStream(NULL));                                                \
    if (bytes_ > 0) CHECK(aclrtFree(workspace_));                                       \
  } while (0)

/* Windows of 2 cells along each axis in steps of 1: 3 x 4 cells have 2 x 3 of them, in three
 * dimensions 3 x 3 x 4 cells 2 x 2 x 3. Adaptive pooling to that size has the same windows. */
static const int64_t plane[] = {1, 2, 3, 4}, pooled_plane[] = {1, 2, 2, 3};
static const int64_t volume[] = {1, 2, 3, 3, 4}, pooled_volume[] = {1, 2, 2, 2, 3};
static const int64_t mask[] = {1, 2, 2 * 2, ((2 * 3 + 15) / 16 + 1) * 32};
static aclIntArray *kernel, *stride, *padding, *dilation, *size_2d, *size_3d;

enum { CELLS = 2 * 3 * 3 * 4, OUTPUTS = 2 * 2 * 2 * 3 }; /* at most */

struct tensors {
  void *memory[5];
  aclTensor *self, *out, *indices, *grad_output, *grad_input;
};

static int adaptive_avg_2d(const struct tensors *t) {
  RUN(aclnnAdaptiveAvgPool2d, t->self, size_2d, t->out);
  RUN(aclnnAdaptiveAvgPool2dBackward, t->grad_output, t->self, t->grad_input);
  return 0;
}

static int adaptive_avg_3d(const struct tensors *t) {
  RUN(aclnnAdaptiveAvgPool3d, t->self, size_3d, t->out);
  RUN(aclnnAdaptiveAvgPool3dBackward, t->grad_output, t->self, t->grad_input);
  return 0;
}

static int adaptive_max_2d(const struct tensors *t) {
  RUN(aclnnAdaptiveMaxPool2d, t->self, size_2d, t->out, t->indices);
  RUN(aclnnAdaptiveMaxPool2dBackward, t->grad_output, t->self, t->indices, t->grad_input);
  return 0;
}

static int adaptive_max_3d(const struct tensors *t) {
  RUN(aclnnAdaptiveMaxPool3d, t->self, size_3d, t->out, t->indices);
  RUN(aclnnAdaptiveMaxPool3dBackward, t->grad_output, t->self, t->indices, t->grad_input);
  return 0;
}

static int avg_2d(const struct tensors *t) {
  RUN(aclnnAvgPool2d, t->self, kernel, stride, padding, false, true, 0, 0, t->out);
  RUN(aclnnAvgPool2dBackward, t->grad_output, t->self, kernel, stride, padding, false, true, 0, 0,
      t->grad_input);
  return 0;
}

static int avg_3d(const struct tensors *t) {
  RUN(aclnnAvgPool3d, t->self, kernel, stride, padding, false, true, 0, t->out);
  RUN(aclnnAvgPool3dBackward, t->grad_output, t->self, kernel, stride, padding, false, true, 0,
      t->grad_input);
  return 0;
}

static int max_2d(const struct tensors *t) {
  RUN(aclnnMaxPool2dWithIndices, t->self, kernel, stride, padding, dilation, false, t->out,
      t->indices);
  RUN(aclnnMaxPool2dWithIndicesBackward, t->grad_output, t->self, t->indices, kernel, stride,
      padding, dilation, false, t->grad_input);
  return 0;
}

static int max_2d_mask(const struct tensors *t) {
  RUN(aclnnMaxPool2dWithMask, t->self, kernel, stride, padding, dilation, false, t->out,
      t->indices);
  RUN(aclnnMaxPool2dWithMaskBackward, t->grad_output, t->self, t->indices, kernel, stride, padding,
      dilation, false, t->grad_input);
  return 0;
}

static int max_3d(const struct tensors *t) {
  RUN(aclnnMaxPool3dWithArgmax, t->self, kernel, stride, padding, dilation, false, t->out,
      t->indices);
  RUN(aclnnMaxPool3dWithArgmaxBackward, t->grad_output, t->self, t->indices, kernel, stride,
      padding, dilation, false, t->grad_input);
  return 0;
}

/* A name, the function above, the number of axes, the type of the indices; ACL_INT8: a mask. */
static const struct pair {
  const char *forward;
  int (*run)(const struct tensors *t);
  uint64_t axes;
  aclDataType index_type;
} pairs[] = {
    {"aclnnAdaptiveAvgPool2d", adaptive_avg_2d, 4, ACL_DT_UNDEFINED},
    {"aclnnAdaptiveAvgPool3d", adaptive_avg_3d, 5, ACL_DT_UNDEFINED},
    {"aclnnAdaptiveMaxPool2d", adaptive_max_2d, 4, ACL_INT64},
    {"aclnnAdaptiveMaxPool3d", adaptive_max_3d, 5, ACL_INT32},
    {"aclnnAvgPool2d", avg_2d, 4, ACL_DT_UNDEFINED},
    {"aclnnAvgPool3d", avg_3d, 5, ACL_DT_UNDEFINED},
    {"aclnnMaxPool2dWithIndices", max_2d, 4, ACL_INT32},
    {"aclnnMaxPool2dWithMask", max_2d_mask, 4, ACL_INT8},
    {"aclnnMaxPool3dWithArgmax", max_3d, 5, ACL_INT32},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* A tensor in new device memory, which is zeros. */
static int make(void **memory, aclTensor **tensor, const int64_t *dims, uint64_t axes,
                aclDataType type) {
  const aclFormat format = axes == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW;
  size_t bytes = aclDataTypeSize(type);
  for (uint64_t i = 0; i < axes; i++) bytes *= (size_t)dims[i];
  CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemset(*memory, bytes, 0, bytes));
  *tensor = aclCreateTensor(dims, axes, type, NULL, 0, format, dims, axes, *memory);
  return *tensor == NULL;
}

static int make_tensors(const struct pair *pair, struct tensors *t) {
  const int64_t *in = pair->axes == 5 ? volume : plane;
  const int64_t *out = pair->axes == 5 ? pooled_volume : pooled_plane;
  const aclDataType index_type = pair->index_type;
  memset(t, 0, sizeof *t);
  if (make(&t->memory[0], &t->self, in, pair->axes, ACL_FLOAT) ||
      make(&t->memory[1], &t->out, out, pair->axes, ACL_FLOAT) ||
      make(&t->memory[2], &t->grad_output, out, pair->axes, ACL_FLOAT) ||
      make(&t->memory[3], &t->grad_input, in, pair->axes, ACL_FLOAT))
    return 1;
  if (index_type == ACL_DT_UNDEFINED) return 0;
  return make(&t->memory[4], &t->indices, index_type == ACL_INT8 ? mask : out, pair->axes,
              index_type);
}

static int drop_tensors(struct tensors *t) {
  const aclTensor *all[] = {t->self, t->out, t->grad_output, t->grad_input, t->indices};
  for (int i = 0; i < 5 && all[i] != NULL; i++) {
    CHECK(aclDestroyTensor(all[i]));
    CHECK(aclrtFree(t->memory[i]));
  }
  return 0;
}

struct numbers {
  int cells, outputs;
  float cell[CELLS], gradient[OUTPUTS]; /* of the outputs */
};

/* L of these cells, after a run of the pair. */
static int loss(const struct pair *pair, const struct tensors *t, const struct numbers *n,
                double *sum) {
  float out[OUTPUTS];
  const size_t in_bytes = sizeof(float) * (size_t)n->cells,
               out_bytes = sizeof(float) * (size_t)n->outputs;
  CHECK(aclrtMemcpy(t->memory[0], in_bytes, n->cell, in_bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  if (pair->run(t)) return 1;
  CHECK(aclrtMemcpy(out, out_bytes, t->memory[1], out_bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  *sum = 0;
  for (int o = 0; o < n->outputs; o++) *sum += (double)n->gradient[o] * out[o];
  return 0;
}

/* Compares the gradient of each cell with the finite difference. All gradients together must have
 * arrived, so that an operator that does nothing is noticed. */
static int compare(const struct pair *pair, const struct tensors *t, struct numbers *n,
                   const float *found) {
  const float h = 0.25f;
  double given = 0, arrived = 0, above, below;
  for (int o = 0; o < n->outputs; o++) given += n->gradient[o];
  for (int i = 0; i < n->cells; i++) {
    const float cell = n->cell[i];
    n->cell[i] = cell + h;
    if (loss(pair, t, n, &above)) return 1;
    n->cell[i] = cell - h;
    if (loss(pair, t, n, &below)) return 1;
    n->cell[i] = cell;
    arrived += found[i];
    if (found[i] == (above - below) / (2 * h)) continue;
    fprintf(stderr, "%s: the gradient of cell %d is %g, the finite difference %g\n", pair->forward,
            i, found[i], (above - below) / (2 * h));
    return 1;
  }
  if (given == arrived) return 0;
  fprintf(stderr, "%s: gradients of %g in all, %g arrived\n", pair->forward, given, arrived);
  return 1;
}

static int round_trip(const struct pair *pair) {
  struct tensors t;
  struct numbers n;
  n.cells = pair->axes == 5 ? CELLS : CELLS / 3;
  n.outputs = pair->axes == 5 ? OUTPUTS : OUTPUTS / 2;
  const size_t in_bytes = sizeof(float) * (size_t)n.cells,
               out_bytes = sizeof(float) * (size_t)n.outputs;
  float found[CELLS];
  double sum;
  for (int i = 0; i < n.cells; i++) n.cell[i] = (float)(i * 7 % n.cells);
  for (int o = 0; o < n.outputs; o++) n.gradient[o] = (float)(o + 1);
  if (make_tensors(pair, &t)) return 1;
  CHECK(aclrtMemcpy(t.memory[2], out_bytes, n.gradient, out_bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  if (loss(pair, &t, &n, &sum)) return 1;
  CHECK(aclrtMemcpy(found, in_bytes, t.memory[3], in_bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  if (compare(pair, &t, &n, found)) return 1;
  printf("%s, then its backward: the gradients of the first 3 x 4 of %d cells\n ", pair->forward,
         n.cells);
  for (int i = 0; i < 12; i++) printf("%s %g", i % 4 == 0 && i > 0 ? " |" : "", found[i]);
  printf("\n");
  return drop_tensors(&t);
}

int main(void) {
  const int64_t two = 2, one = 1, zero = 0;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  kernel = aclCreateIntArray(&two, 1);
  stride = aclCreateIntArray(&one, 1);
  padding = aclCreateIntArray(&zero, 1);
  dilation = aclCreateIntArray(&one, 1);
  size_2d = aclCreateIntArray(pooled_plane + 2, 2);
  size_3d = aclCreateIntArray(pooled_volume + 2, 3);
  for (int i = 0; i < PAIRS; i++)
    if (round_trip(&pairs[i])) return 1;
  const aclIntArray *arrays[] = {kernel, stride, padding, dilation, size_2d, size_3d};
  for (int i = 0; i < 6; i++) CHECK(aclDestroyIntArray(arrays[i]));
  CHECK(aclFinalize());
  printf("summary: %d pairs of operators: each gradient equals the finite difference\n", PAIRS);
  return 0;
}
