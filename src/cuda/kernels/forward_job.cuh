/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods of PG_MAX_FORWARD and PG_AVG_FORWARD share. */
#ifndef PG_CUDA_FORWARD_JOB_CUH_
#define PG_CUDA_FORWARD_JOB_CUH_

#include "cuda/call.cuh"
#include "cuda/kernels/box.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/with_type.cuh"
#include "kernels/tiling.h"

struct forward_job {
  pg_pooling pool;
  int64_t outputs;    /* of all planes */
  bool channels_last; /* outputs are counted along C first, otherwise along W */
  bool global;        /* a plane has one output, whose window holds all of its cells */
};

struct forward_output {
  int64_t n, c, d, h, w;
};

/* The i-th output, in the order in which neighbours are neighbours in memory. */
static __device__ __forceinline__ forward_output output_at(const forward_job &j, int64_t i) {
  const pg_pooling &p = j.pool;
  forward_output o;
  if (j.channels_last) {
    o.c = i % p.c;
    i /= p.c;
  }
  o.w = i % p.w.out;
  i /= p.w.out;
  o.h = i % p.h.out;
  i /= p.h.out;
  o.d = i % p.d.out;
  i /= p.d.out;
  if (!j.channels_last) {
    o.c = i % p.c;
    i /= p.c;
  }
  o.n = i;
  return o;
}

/* Numbers that elements are compared as. */
static __device__ __forceinline__ float compared(pg_f16 x) { return widened(x); }
static __device__ __forceinline__ float compared(pg_bf16 x) { return widened(x); }
template <typename E>
static __device__ __forceinline__ E compared(E x) {
  return x;
}

/* Does x replace the greatest cell so far?  A NaN does, and only a NaN replaces a NaN. */
template <typename T>
static __device__ __forceinline__ bool replaces(T x, T greatest) {
  return x > greatest || x != x;
}

static inline forward_job forward_job_of(const pg_cuda_call *call) {
  const pg_facts &f = call->task->problem.facts;
  forward_job j = {};
  j.pool = f.pool;
  j.outputs = f.planes * f.outputs;
  j.channels_last = f.neighbours;
  j.global = pg_is_global(&f.pool);
  return j;
}

/* Blocks in which each thread has an output; the threads of huge problems have several. */
static inline int64_t forward_blocks(const forward_job &j, int threads) {
  const int64_t most = (int64_t)1 << 24, blocks = (j.outputs + threads - 1) / threads;
  return blocks < most ? blocks : most;
}

static inline bool fits_any_forward(const pg_problem *problem, pg_tiling *tiling) {
  const pg_pooling grid = pg_output_grid(&problem->facts.pool);
  *tiling = pg_tile_flat(&grid, 4096);
  return true;
}

#endif
