/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of any length: the last method.
 *
 * A warp computes a block of 1024 elements: each lane has one of the 32 partial sums, and adds
 * eight elements after each question for their type.  With many outputs, or few blocks, a warp goes
 * through all blocks of an output.  Otherwise each block has a warp, which writes its sum into the
 * workspace, where the sums are the elements of another pass, until they are few. */
#include "cuda/kernels/reduce.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / 32,
  K = 8,
  LEVELS = 4,          /* of sums: 2^50 elements */
  MANY_OUTPUTS = 4096, /* fill a GPU with a warp each */
  FEW_BLOCKS = 4       /* take a warp no longer than another pass */
};

/* Where a pass takes elements from and puts results to, besides the tensors. */
struct pass {
  const void *values;       /* of the pass before, count for each output; NULL: the tensor's */
  const int64_t *positions; /* the same for extrema */
  void *values_to;          /* for the next one; NULL: this is the last */
  int64_t *positions_to;
  int64_t blocks; /* of an output */
};

/* What a warp has to do: an output, and its blocks from one to another. */
struct unit {
  int64_t number, output, first, end;
  int64_t offset; /* of the first element */
};

static __device__ __forceinline__ unit unit_at(const reduce_job &j, const pass &p, int64_t number) {
  unit u = {number, number, 0, p.blocks, 0};
  if (p.values_to != nullptr) {
    u.output = number / p.blocks;
    u.first = number - u.output * p.blocks;
    u.end = u.first + 1;
  }
  u.offset =
      p.values != nullptr ? u.output * j.inner.count : offset_at(j.outer, j.a.in.strides, u.output);
  return u;
}

static __device__ __forceinline__ int64_t units_of(const reduce_job &j, const pass &p) {
  return p.values_to != nullptr ? j.outer.count * p.blocks : j.outer.count;
}

/* --- Sums --- */

/* The sums of blocks, which are elements of blocks, and so on.  Each lane has one partial sum of
 * the latest block of every level.  A level with one element passes it on as it is, because no sum
 * is -0. */
template <typename T>
struct sum_tree {
  T partial[LEVELS];
};

/* Adds element `number` of a level. */
template <int LEVEL, typename T>
static __device__ __forceinline__ void add_to_tree(sum_tree<T> *tree, T x, int64_t number) {
  if constexpr (LEVEL < LEVELS) {
    if (lane_number() == number % PG_REDUCE_PARTIAL)
      tree->partial[LEVEL] = plus(tree->partial[LEVEL], x);
    if (number % PG_REDUCE_BLOCK != PG_REDUCE_BLOCK - 1) return;
    const T sum = sum_of_lanes(tree->partial[LEVEL]);
    tree->partial[LEVEL] = 0;
    add_to_tree<LEVEL + 1>(tree, sum, number / PG_REDUCE_BLOCK);
  }
}

/* Adds up what is left of each level, of which the first has `count` elements. */
template <int LEVEL, typename T>
static __device__ __forceinline__ T sum_of_tree(sum_tree<T> *tree, int64_t count) {
  const T sum = sum_of_lanes(tree->partial[LEVEL]);
  if constexpr (LEVEL + 1 < LEVELS) {
    if (count % PG_REDUCE_BLOCK != 0) add_to_tree<LEVEL + 1>(tree, sum, count / PG_REDUCE_BLOCK);
    return sum_of_tree<LEVEL + 1>(tree, (count + PG_REDUCE_BLOCK - 1) / PG_REDUCE_BLOCK);
  }
  return sum;
}

template <typename T>
static __device__ __forceinline__ T sum_of_block(const reduce_job &j, int64_t offset,
                                                 int64_t block) {
  const int64_t begin = block * PG_REDUCE_BLOCK;
  T sum = 0;
  for (int64_t first = begin; first < least(begin + PG_REDUCE_BLOCK, j.inner.count);
       first += K * PG_REDUCE_PARTIAL) {
    T x[K];
    const int64_t own = first + lane_number();
    load_elements(j, offset, own, PG_REDUCE_PARTIAL, x);
#pragma unroll
    for (int k = 0; k < K; k++)
      if (own + k * PG_REDUCE_PARTIAL < j.inner.count) sum = plus(sum, x[k]);
  }
  return sum_of_lanes(sum);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    sum_blocks(const __grid_constant__ reduce_job j, const __grid_constant__ pass p) {
  const int64_t units = units_of(j, p);
  for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < units;
       i += (int64_t)gridDim.x * WARPS) {
    const unit u = unit_at(j, p, i);
    if (p.values_to != nullptr) {
      const T sum = sum_of_block<T>(j, u.offset, u.first);
      if (lane_number() == 0) ((T *)p.values_to)[u.number] = sum;
      continue;
    }
    sum_tree<T> tree = {};
    for (int64_t block = u.first; block < u.end; block++)
      add_to_tree<0>(&tree, sum_of_block<T>(j, u.offset, block), block);
    const T sum = sum_of_tree<0>(&tree, p.blocks);
    if (lane_number() == 0) store_sum(j, u.output, sum);
  }
}

/* --- Extrema --- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    best_of_blocks(const __grid_constant__ reduce_job j, const __grid_constant__ pass p) {
  const int64_t units = units_of(j, p);
  for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < units;
       i += (int64_t)gridDim.x * WARPS) {
    const unit u = unit_at(j, p, i);
    const int64_t end = least(u.end * PG_REDUCE_BLOCK, j.inner.count);
    extremum<T> best = {0, -1};
    for (int64_t first = u.first * PG_REDUCE_BLOCK + lane_number(); first < end; first += 32 * K) {
      T x[K];
      load_elements(j, u.offset, first, 32, x);
#pragma unroll
      for (int k = 0; k < K; k++)
        if (first + k * 32 < end) take(j, &best, x[k], first + k * 32);
    }
    best = best_of_lanes(j, best);
    if (p.positions != nullptr && best.position >= 0)
      best.position = p.positions[u.offset + best.position];
    if (lane_number() != 0) continue;
    if (p.values_to == nullptr) {
      store_best(j, u.output, best);
      continue;
    }
    ((T *)p.values_to)[u.number] = best.value;
    p.positions_to[u.number] = best.position;
  }
}

/* --- On the host --- */

static int64_t blocks_of(int64_t elements) { return pg_ceil_div(elements, PG_REDUCE_BLOCK); }

static bool needs_pass(const pg_reduce &a, int64_t blocks) {
  return a.grid.count < MANY_OUTPUTS && blocks > FEW_BLOCKS;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  *tiling = tile_items(problem->args.reduce.grid.count);
  return true;
}

/* A sum, or a value and its position, for each block of each output and pass but the last. */
static int64_t workspace(const pg_problem *problem, const pg_tiling *) {
  const pg_reduce &a = problem->args.reduce;
  int64_t results = 0;
  for (int64_t blocks = blocks_of(a.inner.count); needs_pass(a, blocks); blocks = blocks_of(blocks))
    results += a.grid.count * blocks;
  return results * 2 * (int64_t)sizeof(int64_t);
}

static aclDataType dtype_of_class(pg_class c) {
  if (c == PG_CLASS_FLOAT) return ACL_FLOAT;
  return c == PG_CLASS_DOUBLE ? ACL_DOUBLE : ACL_INT64;
}

/* Turns the problem into that of the next pass: the results are its elements. */
static void pass_on(reduce_job *j, pass *p) {
  pg_grid row = {};
  row.rank = 1;
  row.count = row.sizes[0] = p->blocks;
  j->inner = walk_of(row);
  j->a.inner_strides[0] = 1;
  j->a.in.address = p->values_to;
  j->a.in.dtype = dtype_of_class(j->a.class_of);
  p->values = p->values_to;
  p->positions = p->positions_to;
}

template <typename T>
static cudaError_t run_passes(const pg_cuda_call *call) {
  reduce_job j = reduce_job_of(call);
  const auto kernel = j.a.function == PG_REDUCE_SUM ? sum_blocks<T> : best_of_blocks<T>;
  int64_t *room = (int64_t *)j.a.partial;
  pass p = {};
  for (p.blocks = blocks_of(j.inner.count); needs_pass(j.a, p.blocks);
       p.blocks = blocks_of(p.blocks)) {
    const int64_t results = j.outer.count * p.blocks;
    p.values_to = room;
    p.positions_to = room + results;
    room += 2 * results;
    const cudaError_t status = launch(call, kernel, blocks_for(results, WARPS), THREADS, 0, j, p);
    if (status != cudaSuccess) return status;
    pass_on(&j, &p);
  }
  p.values_to = nullptr;
  p.positions_to = nullptr;
  return launch(call, kernel, blocks_for(j.outer.count, WARPS), THREADS, 0, j, p);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_class(call->task->problem.args.reduce.class_of,
                    [&](auto t) { return run_passes<decltype(t)>(call); });
}

PG_CUDA_METHOD(reduce_any) = {"any", fits, workspace, run, nullptr};
