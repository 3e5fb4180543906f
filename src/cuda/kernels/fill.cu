/* SPDX-License-Identifier: Apache-2.0 */
/* PG_FILL: writes one value to every element of some rows.
 *
 * A thread writes 16 aligned bytes at a time, whatever the element's size and the row's address.
 * Rows without gaps between them are filled as one long row. */
#include <string.h>

#include "cuda/call.cuh"
#include "cuda/kernels/box.cuh"

enum {
  THREADS = 256,
  BLOCKS_OF_PROCESSOR = 8, /* so many fill a processor; more would only have to be started */
};

struct fill_job {
  char *dst;
  int64_t rows, stride, width; /* bytes */
  uint64_t word;               /* the element, as often as it fits */
};

/* `blocks_of_row` neighbouring blocks fill a row together. */
static __global__ void __launch_bounds__(THREADS)
    fill_rows(const __grid_constant__ fill_job j, uint32_t blocks_of_row) {
  const uint32_t x = blockIdx.x % blocks_of_row;
  for (int64_t row = blockIdx.x / blocks_of_row; row < j.rows; row += gridDim.x / blocks_of_row) {
    char *const dst = j.dst + row * j.stride;
    const int64_t lead = (int64_t)((uintptr_t)dst % 16), step = (int64_t)blocks_of_row * THREADS;
    const int skipped = (int)(-lead & 7) * 8; /* bits of the word before an aligned group */
    const uint64_t word = skipped == 0 ? j.word : j.word >> skipped | j.word << (64 - skipped);
    const uint4 words =
        make_uint4((uint32_t)word, (uint32_t)(word >> 32), (uint32_t)word, (uint32_t)(word >> 32));
    for (int64_t g = (int64_t)x * THREADS + threadIdx.x; g * 16 < lead + j.width; g += step) {
      const int64_t first = g * 16 - lead;
      if (first >= 0 && first + 16 <= j.width) {
        *(uint4 *)(dst + first) = words;
        continue;
      }
      for (int64_t i = first < 0 ? 0 : first; i < first + 16 && i < j.width; i++)
        dst[i] = (char)(j.word >> i % 8 * 8);
    }
  }
}

/* --- On the host --- */

static cudaError_t run(const pg_cuda_call *call) {
  const pg_fill_args &a = call->task->problem.args.fill;
  fill_job j = {};
  j.dst = (char *)a.dst;
  j.rows = a.count;
  j.stride = a.stride * a.element_bytes;
  j.width = a.width * a.element_bytes;
  for (int32_t i = 0; i < 8; i += a.element_bytes)
    memcpy((char *)&j.word + i, &a.value, a.element_bytes);
  if (j.rows <= 0 || j.width <= 0) return cudaSuccess;
  if (j.stride == j.width) {
    j.width *= j.rows;
    j.rows = 1;
  }
  const int64_t most = (int64_t)BLOCKS_OF_PROCESSOR * pg_cuda_least_limits()->processors;
  const int64_t needed = (j.width + 15) / 16 / THREADS + 1;
  const uint32_t blocks_of_row = (uint32_t)least(needed, most);
  const int64_t rows_at_once = most / blocks_of_row < 1 ? 1 : most / blocks_of_row;
  return launch(call, fill_rows, blocks_of_row * least(j.rows, rows_at_once), THREADS, 0, j,
                blocks_of_row);
}

static bool fits(const pg_problem *, pg_tiling *) { return true; }

PG_CUDA_METHOD(fill_rows) = {"fill", fits, nullptr, run, nullptr};
