/* SPDX-License-Identifier: Apache-2.0 */
/* What bench.py calls through ctypes: a problem with its data in several sets of buffers on device
 * 0, one timed call of it, and the loop that is its limit.  Timing stays in here, so that no
 * interpreter is in the figures. */
#ifndef PG_BENCH_NATIVE_H_
#define PG_BENCH_NATIVE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_API __attribute__((visibility("default")))

enum { BENCH_TEXT = 512 };

/* The tensors that hold data, of either direction: gradOutput or out; indices; self or gradInput.
 * WIDE_INDICES: for peers that know int64 only. A backward's are the same indices, a forward's are
 * written by nobody else. */
enum { BENCH_OUTPUTS, BENCH_INDICES, BENCH_CELLS, BENCH_WIDE_INDICES, BENCH_TENSORS };

/* A problem in numbers; bench/contestants.py has the same list. Windows are D, H, W; axes are N, C,
 * D, H, W. "in" is the side of the cells, "out" that of the outputs. A mask's indices have the
 * steps of its outputs in planes, and four bytes. */
struct bench_facts {
  int64_t forward, max, sliding;
  int64_t type, index_bytes, spatial; /* type: as in tests/; index_bytes: 0 where there are none */
  int64_t ceil, include_pad, divisor;
  int64_t kernel[3], stride[3], pad[3], dilation[3];
  int64_t in[5], out[5];
  int64_t in_step[5], out_step[5], index_step[5]; /* in elements */
  int64_t in_elements, out_elements, index_elements;
  int64_t read_bytes, write_bytes; /* the least that a call must move */
  int64_t sets;
};

struct bench_row;

/* Reads a problem line into *facts without making anything; 0, or -1 and a sentence. */
BENCH_API int bench_facts_of(const char *line, struct bench_facts *facts, char *why);

/* Makes `sets` copies of the problem's buffers; WIDE_INDICES only for peers. NULL leaves a sentence
 * in why. */
BENCH_API struct bench_row *bench_open(const char *line, int64_t sets, int threads, int for_peers,
                                       char *why);
BENCH_API void bench_close(struct bench_row *row);
BENCH_API void *bench_address(const struct bench_row *row, int64_t set, int tensor);

/* The i-th method, best first, that can compute the row on its device; NULL when there are fewer.
 * Calls use the first, or the one that was set. */
BENCH_API const char *bench_method(struct bench_row *row, int i);
BENCH_API void bench_set_method(struct bench_row *row, int i);

/* What the forward of a backward saw, in the problem's type, dense in the order of gradInput's
 * memory; only for dense NCHW and channels-last. */
BENCH_API void bench_field(const struct bench_row *row, void *to);

/* Microseconds per call (first phase, second phase, synchronise), or a negative number and a
 * sentence. With depth > 1 that many calls are queued before each synchronise. */
BENCH_API double bench_call(struct bench_row *row, int64_t set, int calls, int depth, char *why);

/* A call without its synchronise: 0, or -1 with the sentence in aclGetRecentErrMsg; the type that
 * others time.  The stream it goes to.  Microseconds on the host for each of many. */
typedef int bench_work(void *row, int64_t set);
BENCH_API int bench_enqueue(void *row, int64_t set);
BENCH_API void *bench_stream(const struct bench_row *row);
BENCH_API double bench_host(struct bench_row *row, int64_t set, int calls, char *why);

/* Microseconds of the twin: reads and writes what the call must, with these threads. */
BENCH_API double bench_twin(const struct bench_row *row, int64_t set, int calls, int threads,
                            int streaming);
BENCH_API int bench_can_stream(void);

/* Fills all that a call writes with NaN, past the caches where the machine can. */
BENCH_API void bench_poison(struct bench_row *row, int64_t set);

/* How many elements of the result, which is gradInput or out, still are poison; where the host
 * cannot reach them, use cuda_unwritten. */
BENCH_API int64_t bench_unwritten(const struct bench_row *row, int64_t set);

/* Keeps the first elements of the result; the largest difference from them, relative to the
 * largest. */
BENCH_API void bench_keep(struct bench_row *row, int64_t set);
BENCH_API double bench_difference(const struct bench_row *row, int64_t set);

/* --- twin.c -----------------------------------------------------------------------------------
 */
double twin_run(const char *from, size_t read, char *to, size_t write, int calls, int threads,
                int streaming);
void twin_fill(char *to, size_t bytes, int byte);
double bench_now_us(void);

/* --- onednn.cpp, a library of its own ---------------------------------------------------------
 */
BENCH_API const char *onednn_version(void);
BENCH_API void *onednn_open(const struct bench_facts *facts, const void *field, int threads,
                            char *why);
BENCH_API void onednn_close(void *handle);
BENCH_API double onednn_call(void *handle, int64_t set, void *outputs, void *cells, int calls);

/* --- cuda_native.cu, a library of its own; negative numbers say that CUDA has failed -----------
 */

struct cuda_series {
  int64_t sets, first; /* calls take the sets in turn, from this one on */
  int64_t count;       /* of samples */
  int64_t batch;       /* calls between the two events of a sample */
};

BENCH_API const char *cuda_trouble(void); /* the sentence of the latest failure */
BENCH_API int cuda_describe(char *name, int64_t *cache_bytes, int64_t *free_bytes);
BENCH_API int64_t cuda_multiprocessors(void);
/* Microseconds of the host for each of so many launches of an empty kernel, one after the other. */
BENCH_API double cuda_launch_host(void *stream, int launches);

/* Bytes per microsecond that a kernel reads, and one that writes numbers without pattern. */
BENCH_API double cuda_read_rate(void);
BENCH_API double cuda_fill_rate(void);

/* Microseconds per call, one figure for each sample. */
BENCH_API int cuda_samples(void *stream, bench_work *work, void *what,
                           const struct cuda_series *series, float *us);

/* Microseconds per call when a graph of many is replayed. */
BENCH_API double cuda_replay(void *stream, bench_work *work, void *what, int calls, int replays);

/* Max pooling the usual way: zeros, then atomic additions in no order. */
BENCH_API int cuda_scatter(void *stream, const struct bench_facts *facts, const void *grad_out,
                           const void *index, void *grad_in);
BENCH_API int64_t cuda_unwritten(const void *result, int64_t elements, int64_t element_bytes);

#ifdef __cplusplus
}
#endif

#endif
