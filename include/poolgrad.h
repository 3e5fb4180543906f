/* SPDX-License-Identifier: Apache-2.0 */

/* poolgrad: the gradients of pooling, behind the interface of an NPU runtime, on ordinary
 * hardware.
 *
 * Programs speak to it through acl/acl.h (devices, streams, memory) and aclnnop/ (operators). This
 * header has the little for which that interface has no word. It needs no other header.
 *
 * A call that fails leaves one sentence that says why: print aclGetRecentErrMsg(), or run the
 * program with ASCEND_LOG_PRINT_TO_STDOUT=1.
 *
 * Environment, read by aclInit and aclnnInit (without them, at the first use); while devices are in
 * use their list stays, and the number of threads is read once. A program whose privileges changed
 * when it was started (set-user-id and the like) finds none of them set. A variable POOLGRAD_...
 * that is not in this list is named in the log at level warning, and otherwise ignored:
 *
 *   POOLGRAD_DEVICES  The devices the program sees: a comma list, the first being device 0. "cuda"
 *                     stands for all CUDA devices, "cuda:N" for one of them, counted from 0, "cpu"
 *                     for the CPU, which always exists. A word given twice makes two devices. One
 *                     that is unknown or has no device makes aclInit fail with 100000. Unset: all
 *                     CUDA devices if there are any, else the CPU.
 *   POOLGRAD_CUDA     The file of the CUDA plug-in, or "off". Read once in a process. A file that
 *                     cannot be used is named in the log at level warning. Unset:
 *                     "libpoolgrad_cuda.so" in the library's own folder.
 *   POOLGRAD_THREADS  How many threads the CPU device computes with, 1 to 1024. Anything else makes
 *                     aclInit fail with 100000. Unset or empty: as many as the CPUs this process
 *                     may use. Results do not depend on it.
 *   POOLGRAD_ISA      The instruction set of the CPU device's kernels: "avx512", "avx2", "neon",
 *                     "scalar". One that is unknown or that the CPU cannot run makes aclInit fail
 *                     with 100000. Unset: the best there is. Results do not depend on it.
 *   POOLGRAD_STREAM_BYTES  Results of at least so many bytes are written past the CPU's caches.
 *                     Anything but a number from 1 on makes aclInit fail with 100000. Unset or
 *                     empty: an eighth of the last-level cache, 4 MiB at most. Results do not
 *                     depend on it.
 *   POOLGRAD_SOC      A product name, which begins with "Ascend910B", "Ascend910_93", "Ascend950"
 *                     or "Ascend910_95": the limits of that product hold as well, so that a program
 *                     learns here what its target would refuse. An unknown name makes aclInit fail
 *                     with 100000. Unset: everything that any product allows.
 *   POOLGRAD_STRICT   "1" refuses what works here and would not work on a card: host memory as a
 *                     tensor's data or workspace, copies against their kind, ends of buffers that
 *                     lie in the padding, memory freed before the program has waited for the work
 *                     that uses it (docs/runtime.md has the list). "0" (the default): off. Anything
 *                     else makes aclInit fail with 100000.
 *   POOLGRAD_INDEX_CHECK  What becomes of indices outside their plane, which are always dropped:
 *                     "warn" (the default) writes one line to stderr for a call that has such,
 *                     "error" makes the stream fail with 507015 at the next synchronise, "off" is
 *                     silent. Any other word makes aclInit fail with 100000.
 *   ASCEND_RT_VISIBLE_DEVICES  Picks from the devices above: ascending ids, comma separated;
 *                     reading stops at the first entry that is none. Unset: all of them.
 *   ASCEND_LOG_PRINT_TO_STDOUT  1: the log, with the sentence of every call that fails, goes to
 *                     stdout. 0 (the default): it does not.
 *   ASCEND_SLOG_PRINT_TO_STDOUT  The older name, which counts where the other is not set: 1, or 0
 *                     (the default).
 *   ASCEND_PROCESS_LOG_PATH  A folder: the log goes to debug/plog/plog-<pid>_<time>.log in it,
 *                     unless it goes to stdout. Unset: no file is written.
 *   ASCEND_GLOBAL_LOG_LEVEL  What the log has: 0 debug, 1 info, 2 warning, 3 error and 4 nothing,
 *                     each with all that follow it. Unset: 3.
 *   ASCEND_MODULE_LOG_LEVEL  The same for one module: "APP=n" for lines of aclAppLog, "POOLGRAD=n"
 *                     for the library's own, or both with a colon between. Unset: the global level.
 *   ASCEND_HOME_PATH  The folder of the installation, where versions of packages are looked for.
 *                     set_env.sh sets it. Unset: they are not known. */

#ifndef PG_POOLGRAD_H_
#define PG_POOLGRAD_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define POOLGRAD_API __attribute__((visibility("default")))
#else
#define POOLGRAD_API
#endif

/* The library's version, "major.minor.patch". Static storage. */
POOLGRAD_API const char *poolgrad_version(void);

/* How many threads the CPU device computes with now; at least 1. */
POOLGRAD_API int poolgrad_threads(void);

/* Sets that number; 0 goes back to the default, POOLGRAD_THREADS or the CPUs this process may use.
 * Kernels that run are waited for, so it must not be called from a host function or callback.
 * Results do not change. 0, or 100000 ACL_ERROR_INVALID_PARAM for a negative or absurdly large
 * count: the number stays as it was, and aclGetRecentErrMsg has the sentence. */
POOLGRAD_API int poolgrad_set_threads(int count);

/* The instruction set whose kernels the CPU device uses: "avx512", "avx2", "neon" or "scalar".
 * Static storage. */
POOLGRAD_API const char *poolgrad_isa(void);

/* One line per device, "0: cpu (2 threads)\n"; where CUDA is not used one more says why, "cuda: not
 * used, no driver answers\n". The text belongs to the calling thread and is good until that
 * thread's next call. */
POOLGRAD_API const char *poolgrad_devices(void);

/* The cudaStream_t behind an aclrtStream (NULL: the current context's default stream) on a CUDA
 * device, for capturing calls into a CUDA graph and for mixing them with CUDA code. NULL when the
 * stream is not live or not on a CUDA device; aclGetRecentErrMsg has the sentence. The CUDA stream
 * ends with the aclrtStream. */
POOLGRAD_API void *poolgrad_cuda_stream(void *stream);

/* How the call of an executor is computed. For every kernel a backend ("cpu", "cuda") has several
 * methods, which all give the same bits, and an executor uses the first that fits its call.
 *
 * poolgrad_method: the i-th method that fits, best first; NULL when fewer fit.
 * poolgrad_method_used: the one that will be used. Both are NULL for a call that has nothing to
 * compute, and for an executor or backend that is not there; aclGetRecentErrMsg then has the
 * sentence. The names are in static storage.
 *
 * poolgrad_use_method makes the executor use another one: for tests, benchmarks and reports of
 * mistakes. *workspaceSize becomes what the second phase then needs. 0, or 161001 for a NULL and
 * 161002 for what is not there or does not fit; nothing has changed then. No other thread may use
 * the executor meanwhile. */
POOLGRAD_API const char *poolgrad_method(void *executor, const char *backend, int i);
POOLGRAD_API const char *poolgrad_method_used(void *executor, const char *backend);
POOLGRAD_API int poolgrad_use_method(void *executor, const char *backend, const char *method,
                                     uint64_t *workspaceSize);

#ifdef __cplusplus
}
#endif

#endif
