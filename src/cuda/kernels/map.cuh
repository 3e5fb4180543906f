/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods of PG_MAP share: the problem as kernels see it, and its functions. */
#ifndef PG_CUDA_MAP_CUH_
#define PG_CUDA_MAP_CUH_

#include <type_traits>

#include "cuda/kernels/tensor_grid.cuh"
#include "kernels/map_functions.h"

/* The scalars of a class. */
static inline pg_float_scalars scalars_of(float, const pg_map &a) {
  return {(float)a.s.real, (float)a.t.real, a.flag};
}
static inline pg_double_scalars scalars_of(double, const pg_map &a) {
  return {a.s.real, a.t.real, a.flag};
}
static inline pg_integer_scalars scalars_of(int64_t, const pg_map &a) {
  return {a.s.integer, a.t.integer, a.flag};
}

template <typename T>
struct map_job {
  grid_walk grid;
  pg_tensor_view out, in[PG_MAP_INPUTS];
  decltype(scalars_of(T(), pg_map())) scalars;
  pg_number s, t; /* for random numbers, unconverted */
  uint64_t seed, offset;
  pg_uniform uniform;
  pg_map_function function;
  int32_t inputs;
};

/* A copy between tensors of one type moves bits; but a BOOL becomes 0 or 1. */
static inline bool is_move(const pg_map &a) {
  return a.function == PG_MAP_COPY && a.in[0].dtype == a.out.dtype && a.out.dtype != ACL_BOOL;
}

static inline pg_map as_bits(pg_map a) {
  if (!is_move(a)) return a;
  a.out.dtype = a.in[0].dtype = bits_of(a.out.dtype);
  a.class_of = PG_CLASS_INT;
  return a;
}

template <typename T>
static map_job<T> map_job_of(const pg_map &a) {
  map_job<T> j = {};
  j.grid = walk_of(a.grid);
  j.out = a.out;
  for (int i = 0; i < a.inputs; i++) j.in[i] = a.in[i];
  j.scalars = scalars_of(T(), a);
  j.s = a.s;
  j.t = a.t;
  j.seed = a.seed;
  j.offset = a.offset;
  if (a.function == PG_MAP_UNIFORM) j.uniform = pg_uniform_of(a.s.real, a.t.real, a.out.dtype);
  j.function = a.function;
  j.inputs = a.inputs;
  return j;
}

/* The functions that compute long: they are kept apart, because the registers that they need would
 * slow the others down. */
static constexpr __host__ __device__ bool is_long(pg_map_function f) {
  return f == PG_MAP_POW_VALUE || f == PG_MAP_UNIFORM || f == PG_MAP_NORMAL || f == PG_MAP_RANDOM;
}

/* --- The functions --- */

static __device__ __forceinline__ float function_at(pg_map_function f, float a, float b,
                                                    const pg_float_scalars &k) {
  return pg_map_float(f, a, b, k);
}
static __device__ __forceinline__ double function_at(pg_map_function f, double a, double b,
                                                     const pg_double_scalars &k) {
  return pg_map_double(f, a, b, k);
}
static __device__ __forceinline__ int64_t function_at(pg_map_function f, int64_t a, int64_t b,
                                                      const pg_integer_scalars &k) {
  return pg_map_integer(f, a, b, k);
}

/* Calls fn with the function as a constant, which is looked for by halving. */
template <int FIRST, int END, typename F>
static __device__ __forceinline__ void with_function(pg_map_function function, F fn) {
  constexpr int MIDDLE = (FIRST + END) / 2;
  if constexpr (END - FIRST == 1)
    fn(std::integral_constant<int, FIRST>());
  else if (function < MIDDLE)
    with_function<FIRST, MIDDLE>(function, fn);
  else
    with_function<MIDDLE, END>(function, fn);
}

/* Of K positions at once: which function it is, is asked once. */
template <typename T, int K>
static __device__ __forceinline__ void map_some(const map_job<T> &j, const T (&a)[K],
                                                const T (&b)[K], T (&out)[K]) {
  with_function<0, PG_MAP_FUNCTIONS>(j.function, [&](auto f) {
    constexpr pg_map_function F = (pg_map_function) decltype(f)::value;
    if constexpr (!is_long(F))
#pragma unroll
      for (int k = 0; k < K; k++) out[k] = function_at(F, a[k], b[k], j.scalars);
  });
}

#endif
