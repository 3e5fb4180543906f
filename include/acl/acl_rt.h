/* SPDX-License-Identifier: Apache-2.0 */

/* The runtime: devices, contexts, streams, events, memory.
 *
 * Introduction
 *
 *   A device has memory and computes. A context holds the streams of one device. A stream is an
 *   ordered queue: calls that take a stream put work into it and return; the work runs later, first
 *   in, first out. Streams know nothing of each other; events tie them together.
 *
 *     aclInit(NULL);
 *     aclrtSetDevice(0);
 *     aclrtStream stream;
 *     aclrtCreateStream(&stream);
 *     void *x;
 *     aclrtMalloc(&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
 *     aclrtMemcpy(x, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
 *     ... operators on stream ...
 *     aclrtSynchronizeStream(stream);
 *     aclrtFree(x);
 *     aclrtDestroyStream(stream);
 *     aclrtResetDevice(0);
 *     aclFinalize();
 *
 *   On the CPU device, device memory is ordinary memory: a program may look into it after it has
 *   synchronised. Programs that should also run elsewhere copy with aclrtMemcpy.
 *
 * Rules that hold everywhere
 *
 *   Threads.  Every function may be called from any thread. The current context and the last error
 *     belong to the thread. A new thread has no context until it calls aclrtSetDevice or
 *     aclrtSetCurrentContext.
 *   NULL stream.  It means the default stream of the calling thread's current context, in every
 *     function that takes a stream, except those that destroy one.
 *   Handles.  Streams, events, notifies and contexts are tokens, not addresses. A stale, foreign or
 *     garbage handle gives a code and never crashes: 107017 INVALID_HANDLE, for contexts 107002 or
 *     107000 as their entries say.
 *   Errors in a stream.  Work that fails later does not change what the call that queued it
 *     returned. The stream keeps its first error, and the next call that synchronises it returns
 *     that error, once.
 *   Text.  Every failing call leaves one sentence that names the argument, what was found and what
 *     is allowed: print aclGetRecentErrMsg(). With ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment
 *     all sentences go to stdout as well, without a change to the program.
 *
 * Codes
 *
 *   Entries give numbers and short names. 1000nn and 2000nn carry the prefix ACL_ERROR_
 *   (acl_base_rt.h), 107nnn, 207nnn and 507nnn the prefix ACL_ERROR_RT_
 *   (error_codes/rt_error_codes.h). Unless its entry says otherwise, every function returns
 *
 *     0            ACL_SUCCESS
 *     100000       INVALID_PARAM, for a NULL pointer that must not be NULL (results always),
 *                  a size of 0 that must not be 0, an unknown enumerator
 *     107000       PARAM_INVALID, for a number out of its range
 *     107001       INVALID_DEVICEID, for a device id outside 0 .. count - 1
 *     107002       CONTEXT_NULL, for a call that needs a context on a thread that has none
 *     107003       STREAM_CONTEXT, for a living stream of another context than the current one
 *     107017       INVALID_HANDLE, see above
 *     200000       BAD_ALLOC, when the library's own memory is short
 *     207001       MEMORY_ALLOCATION, when a device's or pinned memory is short
 *     207000       FEATURE_NOT_SUPPORT, for waiting, from inside a stream's work, for that work
 *
 *   and leaves its results untouched when it fails. Entries name further codes only. Calls that use
 *   a stream, create something or synchronise the device need a context. */

#ifndef PG_ACL_RT_H_
#define PG_ACL_RT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"
#include "acl_rt_allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. */
#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

/* Physical memory (at the end of this file). */
typedef void *aclrtDrvMemHandle;

/* Handles that nothing here makes; for programs that name the type. */
typedef void *aclrtBinary;
typedef void *aclrtBinHandle;
typedef void *aclrtFuncHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtParamHandle;
typedef void *aclmdlRI;
typedef void *aclmdlRICondHandle;

/* Start and end */

/* Starts the library. configPath names a JSON file, or is NULL or "" for none; keys the library
 * does not know are ignored. Calls are counted: a second one returns 100002 REPEAT_INITIALIZE, is
 * counted and does no harm.
 * 100003 INVALID_FILE: the file cannot be read; 100006 PARSE_FILE: it is not valid JSON; 100000: a
 * later call's file differs from the first one's, or a POOLGRAD_ variable has a value that is not
 * allowed (poolgrad.h). */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);

/* Ends the library, however often aclInit was counted. Waits for all work, but not for waits
 * that nobody ends: after a second in which all streams only wait, the rest is discarded. Destroys
 * all contexts, streams, events and notifies, and releases all memory still allocated; freeing such
 * memory later succeeds. aclInit may follow. 100037 REPEAT_FINALIZE: ended already. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/* Takes one aclInit back; the last one ends the library as aclFinalize does. *refCount, unless
 * NULL, receives what is left. 100037 REPEAT_FINALIZE: the count is 0. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);

/* Versions */

#define ACL_PKG_VERSION_MAX_SIZE 128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

typedef enum aclCANNPackageName {
  ACL_PKG_NAME_CANN = 0,
  ACL_PKG_NAME_RUNTIME = 1,
  ACL_PKG_NAME_COMPILER = 2,
  ACL_PKG_NAME_HCCL = 3,
  ACL_PKG_NAME_TOOLKIT = 4,
  ACL_PKG_NAME_OPP = 5,
  ACL_PKG_NAME_OPP_KERNEL = 6,
  ACL_PKG_NAME_DRIVER = 7
} aclCANNPackageName;

typedef struct aclCANNPackageVersion {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

/* The version of the package as a string, as its parts, or as one number: major * 10000000 +
 * minor * 100000 + patch * 1000, less 300, 200 or 100 for an alpha, beta or rc, plus its number.
 * pkgName is a lower-case name such as "runtime" ('-' and '_' are the same) and is not changed;
 * versionStr has room for ACL_PKG_VERSION_MAX_SIZE bytes. 100003 INVALID_FILE: no such package. */
ACL_DEPRECATED_MESSAGE("use aclsysGetVersionStr")
ACL_FUNC_VISIBILITY aclError aclsysGetCANNVersion(aclCANNPackageName name,
                                                  aclCANNPackageVersion *version);
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char *pkgName, char *versionStr);
ACL_FUNC_VISIBILITY aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum);

/* ACL_MAJOR_VERSION and its two companions. */
ACL_DEPRECATED_MESSAGE("use aclsysGetVersionNum")
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
                                             int32_t *patchVersion);

/* Errors
 *
 * Three ways to learn what went wrong: the code a call returns, the sentence that goes with it, and
 * the last code of the thread. */

/* The sentences of the calling thread's failed calls since it last asked; NULL when there is none.
 * Reading clears. The text belongs to the library and is good until this thread's next call of
 * this function. The same sentences are in the log: ASCEND_LOG_PRINT_TO_STDOUT=1 prints them. */
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

typedef enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

/* The last error code of a runtime call on this thread, 0 when there is none; a later failure of
 * another call takes its place. Get clears it, Peek does not. 100000: another level. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

typedef struct rtExceptionInfo aclrtExceptionInfo;
typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *exceptionInfo);

/* Registers a function to be called, on the thread that ran it, when work in a stream fails. The
 * info is good during the call only; the function must not wait for a stream, allocate or queue
 * work. aclrtSetExceptionInfoCallback keeps one function, NULL for none; Register keeps several.
 * 107000: NULL in Register, or NULL or unknown in Unregister. */
ACL_DEPRECATED_MESSAGE("use aclrtExceptionInfoCallbackRegister")
ACL_FUNC_VISIBILITY aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback);
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback);

/* The parts of an exception info; 0xFFFFFFFF for a NULL info. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info);

typedef enum aclrtErrorType {
  ACL_RT_NO_ERROR = 0,
  ACL_RT_ERROR_MEMORY = 1,
  ACL_RT_ERROR_L2 = 2,
  ACL_RT_ERROR_AICORE = 3,
  ACL_RT_ERROR_LINK = 4,
  ACL_RT_ERROR_L3_PORT = 5,
  ACL_RT_ERROR_OTHERS = 0xFFFF
} aclrtErrorType;

typedef enum aclrtAicoreErrorType {
  ACL_RT_AICORE_ERROR_UNKNOWN = 0,
  ACL_RT_AICORE_ERROR_SW = 1,
  ACL_RT_AICORE_ERROR_HW_LOCAL = 2
} aclrtAicoreErrorType;

#define ACL_RT_MEM_UCE_INFO_MAX_NUM 20

typedef struct aclrtMemUceInfo {
  void *addr;
  size_t len; /* bytes */
  size_t reserved[14];
} aclrtMemUceInfo;

typedef struct aclrtMemUceInfoArray {
  size_t arraySize; /* entries in use */
  aclrtMemUceInfo memUceInfoArray[ACL_RT_MEM_UCE_INFO_MAX_NUM];
} aclrtMemUceInfoArray;

typedef union aclrtErrorInfoDetail {
  aclrtMemUceInfoArray uceInfo;
  aclrtAicoreErrorType aicoreErrType;
} aclrtErrorInfoDetail;

typedef struct aclrtErrorInfo {
  uint8_t tryRepair; /* 1: the fault can be repaired */
  uint8_t hasDetail; /* 1: detail is filled in */
  uint8_t reserved[2];
  aclrtErrorType errorType;
  aclrtErrorInfoDetail detail;
} aclrtErrorInfo;

/* What is wrong with the device itself; ACL_RT_NO_ERROR when nothing is. */
ACL_FUNC_VISIBILITY aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo);

/* Devices */

typedef enum aclrtRunMode { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

typedef enum aclrtTsId {
  ACL_TS_ID_AICORE = 0,
  ACL_TS_ID_AIVECTOR = 1,
  ACL_TS_ID_RESERVED = 2
} aclrtTsId;

typedef enum aclrtDeviceStatus {
  ACL_RT_DEVICE_STATUS_NORMAL = 0,
  ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
  ACL_RT_DEVICE_STATUS_END = 0xFFFF
} aclrtDeviceStatus;

typedef enum aclrtGroupAttr {
  ACL_GROUP_AICORE_INT = 0,
  ACL_GROUP_AIV_INT = 1,
  ACL_GROUP_AIC_INT = 2,
  ACL_GROUP_SDMANUM_INT = 3,
  ACL_GROUP_ASQNUM_INT = 4,
  ACL_GROUP_GROUPID_INT = 5
} aclrtGroupAttr;

typedef enum aclrtFloatOverflowMode {
  ACL_RT_OVERFLOW_MODE_SATURATION = 0,
  ACL_RT_OVERFLOW_MODE_INFNAN = 1,
  ACL_RT_OVERFLOW_MODE_UNDEF = 2
} aclrtFloatOverflowMode;

typedef enum aclrtDevResLimitType {
  ACL_RT_DEV_RES_CUBE_CORE = 0,
  ACL_RT_DEV_RES_VECTOR_CORE = 1
} aclrtDevResLimitType;

typedef enum aclrtDevFeatureType {
  ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 1,
  ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 21
} aclrtDevFeatureType;

#define ACL_DEV_FEATURE_NOT_SUPPORT 0
#define ACL_DEV_FEATURE_SUPPORT 1

typedef enum aclrtDevAttr {
  ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
  ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
  ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
  ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
  ACL_DEV_ATTR_WARP_SIZE = 202,
  ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 203,
  ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204,
  ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE = 204, /* old name */
  ACL_DEV_ATTR_MAX_GRID_DIM_X = 205,
  ACL_DEV_ATTR_MAX_GRID_DIM_Y = 206,
  ACL_DEV_ATTR_MAX_GRID_DIM_Z = 207,
  ACL_DEV_ATTR_MAX_BLOCK_PER_GRID = 208,
  ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK = 209,
  ACL_DEV_ATTR_MAX_BLOCK_DIM_X = 210,
  ACL_DEV_ATTR_MAX_BLOCK_DIM_Y = 211,
  ACL_DEV_ATTR_MAX_BLOCK_DIM_Z = 212,
  ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301, /* bytes */
  ACL_DEV_ATTR_L2_CACHE_SIZE = 302,         /* bytes */
  ACL_DEV_ATTR_SMP_ID = 401,
  ACL_DEV_ATTR_PHY_CHIP_ID = 402,
  ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403,
  ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID = 403, /* old spelling */
  ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404,
  ACL_DEV_ATTR_SUPER_POD_ID = 405,
  ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406,
  ACL_DEV_ATTR_MAINBOARD_ID = 407,
  ACL_DEV_ATTR_HD_CONNECT_TYPE = 408,
  ACL_DEV_ATTR_DEVICE_FORM_FACTOR = 409,
  ACL_DEV_ATTR_IS_VIRTUAL = 501,
  ACL_DEV_ATTR_NPU_ARCH = 601 /* of the product chosen: 3510 Ascend950, 2201 Ascend910B, ... */
} aclrtDevAttr;

typedef struct aclrtUtilizationExtendInfo aclrtUtilizationExtendInfo;

/* Percent of full use; -1 for what is not measured. */
typedef struct aclrtUtilizationInfo {
  int32_t cubeUtilization;
  int32_t vectorUtilization;
  int32_t aicpuUtilization;
  int32_t memoryUtilization;
  aclrtUtilizationExtendInfo *utilizationExtend; /* reserved, NULL */
} aclrtUtilizationInfo;

/* Makes the device's default context current for the calling thread, whatever was current before.
 * Threads that set one device share that context and its default stream. Each call counts. */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);

/* Takes one aclrtSetDevice back. The last one waits for the work of the default context as
 * aclFinalize does, destroys its streams and the context. ResetDeviceForce does that at once,
 * whatever the count. 507007 CONTEXT_RELEASE_ERROR: the device is not set. */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);

/* The device of the current context. 107002: none is set; that answer is not the last error. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t *deviceId);

/* How many devices there are: POOLGRAD_DEVICES, then ASCEND_RT_VISIBLE_DEVICES (an ascending comma
 * list of ids, counted anew from 0). 207004 NO_DEVICE: none. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t *count);

/* ACL_HOST: the program runs on the host, beside the device. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode *runMode);

/* Waits until every stream of the current device is empty, and returns the first error that no
 * synchronise has returned yet. timeout in ms: -1 for ever, 0 does not wait, less is 107000.
 * 507046 STREAM_SYNC_TIMEOUT: time is up; the work goes on. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/* Accepts ACL_TS_ID_AICORE and ACL_TS_ID_AIVECTOR and changes nothing. */
ACL_FUNC_VISIBILITY aclError aclrtSetTsDevice(aclrtTsId tsId);

/* How busy the device is. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                                           aclrtUtilizationInfo *utilizationInfo);

/* The number of the calling process, as processes of the same machine see it. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetBareTgid(int32_t *pid);

/* ACL_RT_DEVICE_STATUS_NORMAL while the device works. */
ACL_FUNC_VISIBILITY aclError aclrtQueryDeviceStatus(int32_t deviceId,
                                                    aclrtDeviceStatus *deviceStatus);

/* One number about a device; cores of the CPU device are its threads. 207000 FEATURE_NOT_SUPPORT:
 * the device has no such number. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
                                                int64_t *value);

/* The range of stream priorities; either pointer may be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority,
                                                               int32_t *greatestPriority);

/* ACL_DEV_FEATURE_SUPPORT or ACL_DEV_FEATURE_NOT_SUPPORT. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCapability(int32_t deviceId,
                                                      aclrtDevFeatureType devFeatureType,
                                                      int32_t *value);

/* *canAccessPeer is 1 when deviceId can reach the memory of peerDeviceId, else 0. 100000: the two
 * are the same. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId,
                                                      int32_t peerDeviceId);

/* Lets the current device reach the memory of another, or no longer. flags must be 0. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/* How many cores work may use: of a device, of a stream, and as seen by the calling thread. Use
 * makes the limits of a stream those of the calling thread, Unuse takes that back;
 * aclrtGetResInCurrentThread tells which hold: the used stream's, else the device's. Results of
 * operators never depend on them. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t *value);
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceResLimit(int32_t deviceId);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t *value);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetStreamResLimit(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value);

/* How overflow shows. Stored and reported back; the operators keep Inf and NaN in either mode.
 * 107000: an unknown mode. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode);

/* *canCompatible is 1 when a program made for product socVersion may run here, else 0. */
ACL_FUNC_VISIBILITY aclError aclrtCheckArchCompatibility(const char *socVersion,
                                                         int32_t *canCompatible);

/* Contexts
 *
 * Life of a context:
 *   1. The default context of a device appears with aclrtSetDevice and goes with the last
 *      aclrtResetDevice. Further ones are made by aclrtCreateContext.
 *   2. It is current on a thread from aclrtSetDevice, aclrtCreateContext or aclrtSetCurrentContext
 *      until the next of these calls there. One context may be current on many threads.
 *   3. It has a default stream from birth; more are made by aclrtCreateStream.
 *   4. aclrtDestroyContext ends one that was created, with its streams. */

/* Creates a context on a device and makes it current. The device need not be set. The caller owns
 * it until aclrtDestroyContext or aclFinalize. */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/* Waits for the context's work and destroys it with its streams; threads on which it was current
 * have none afterwards. 107002: a default context, or no living context. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);

/* Makes a context, and so its device, current for the calling thread. A default context, got with
 * aclrtGetCurrentContext, may be given too. 107000: no living context. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext *context);

/* The stream that NULL stands for. It belongs to the context and cannot be destroyed. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);

/* *active is 1 while the device's default context lives, else 0. flags must be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags,
                                                     int32_t *active);

typedef enum aclSysParamOpt {
  ACL_OPT_DETERMINISTIC = 0,                     /* 0 .. 3 */
  ACL_OPT_ENABLE_DEBUG_KERNEL = 1,               /* 0 or 1 */
  ACL_OPT_STRONG_CONSISTENCY ACL_DEPRECATED = 2, /* 0 or 1 */
  ACL_OPT_ENABLE_KERNEL_EARLY_START = 3          /* 0 or 1; process only */
} aclSysParamOpt;

/* Options of the current context (Ctx) and of the process. All are accepted, stored and reported
 * back, and change nothing: results are deterministic always. Setting one in a context sets it for
 * the process too. The process functions need no context and give 0 for what was never set; in a
 * context that is 107021 SYSPARAMOPT_NOT_SET. 107000: a value out of the option's range. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);

/* Streams
 *
 * Life of a stream:
 *   1. aclrtCreateStream makes it in the current context.
 *   2. Operators, copies, records, waits and host functions queue work in it.
 *   3. aclrtSynchronizeStream waits until it is empty and tells the first error.
 *   4. aclrtDestroyStream ends it. What it does not end, aclrtResetDevice, aclrtDestroyContext or
 *      aclFinalize will. */

/* Flags of a stream: stored, and reported by aclrtStreamGetFlags. Streams with PERSISTENT,
 * CPU_SCHEDULE or DEVICE_USE_ONLY are never waited for: synchronising one returns at once. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U
#define ACL_STREAM_PERSISTENT 0x00000004U
#define ACL_STREAM_HUGE 0x00000008U
#define ACL_STREAM_CPU_SCHEDULE 0x00000010U
#define ACL_STREAM_DEVICE_USE_ONLY 0x00000020U

#define ACL_CONTINUE_ON_FAILURE 0x00000000U
#define ACL_STOP_ON_FAILURE 0x00000001U

typedef enum aclrtStreamStatus {
  ACL_STREAM_STATUS_COMPLETE = 0,
  ACL_STREAM_STATUS_NOT_READY = 1,
  ACL_STREAM_STATUS_RESERVED = 0xFFFF
} aclrtStreamStatus;

typedef enum aclrtStreamAttr {
  ACL_STREAM_ATTR_FAILURE_MODE = 1,
  ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = 2,
  ACL_STREAM_ATTR_USER_CUSTOM_TAG = 3,
  ACL_STREAM_ATTR_CACHE_OP_INFO = 4,
  ACL_STREAM_ATTR_PRIORITY = 5
} aclrtStreamAttr;

typedef union aclrtStreamAttrValue {
  uint64_t failureMode; /* ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE */
  uint32_t overflowSwitch;
  uint32_t userCustomTag;
  uint32_t cacheOpInfoSwitch;
  uint32_t priority;
  uint32_t reserve[4];
} aclrtStreamAttrValue;

typedef enum aclrtStreamConfigAttr {
  ACL_RT_STREAM_WORK_ADDR_PTR = 0, /* void * */
  ACL_RT_STREAM_WORK_SIZE = 1,     /* size_t, bytes */
  ACL_RT_STREAM_FLAG = 2,          /* size_t, ACL_STREAM_... */
  ACL_RT_STREAM_PRIORITY = 3       /* uint32_t */
} aclrtStreamConfigAttr;

typedef struct aclrtStreamConfigHandle {
  void *workptr;
  size_t workSize;
  size_t flag;
  uint32_t priority;
} aclrtStreamConfigHandle;

/* A set of wishes for aclrtCreateStreamV2, owned by the caller until Destroy; Create returns NULL
 * when memory is short. SetStreamConfigOpt copies valueSize bytes from value, which must be the
 * size of the attribute's type (else 100000). 107017: not a live one of Create's. */
ACL_FUNC_VISIBILITY aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle,
                                                     aclrtStreamConfigAttr attr,
                                                     const void *attrValue, size_t valueSize);

/* Creates a stream in the current context. Priorities are stored, not obeyed; unknown flag bits
 * are ignored. The handle may be destroyed right after CreateStreamV2.
 * 207008 NO_STREAM_RESOURCE: too many streams. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream *stream);
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamV2(aclrtStream *stream,
                                                 const aclrtStreamConfigHandle *handle);
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
                                                         uint32_t flag);

/* Ends a stream. DestroyStream waits for all its work. DestroyStreamForce does not: it drops what
 * has not started and stops the step that runs. It returns when a kernel, copy or fill on the CPU
 * has stopped, and does not wait for a host function or a kernel on a GPU, which cannot be stopped;
 * their memory must live until they end.
 * 100000: NULL. 107017: also for a default stream. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);

/* Waits until the stream is empty and returns its first error, once: the next call returns 0 unless
 * new work fails. 107019 WAIT_TIMEOUT: a wait in the stream ran out of time. 507015
 * AICORE_EXCEPTION: a kernel refused its data. 107023 STREAM_ABORT: work that was waited for was
 * discarded by an abort or a forced end.
 * timeout in ms: -1 for ever; 0 or less than -1 is 107000. 507046 STREAM_SYNC_TIMEOUT: time is up;
 * the work goes on. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Looks without waiting: COMPLETE when the stream is empty. Errors stay for synchronise. */
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

ACL_FUNC_VISIBILITY aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags);

/* A small number, unique among the living streams. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);

/* How many more streams can be created. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAvailableNum(uint32_t *streamCount);

/* What queues after a failure: ACL_CONTINUE_ON_FAILURE (the default) runs it, ACL_STOP_ON_FAILURE
 * drops it until synchronise has told the error. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/* Attributes by name; all but the failure mode are stored and reported back only. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream,
                                                     aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue *value);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAttribute(aclrtStream stream,
                                                     aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue *value);

/* The overflow check of a stream, 0 or 1; stored and reported back only. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag);

/* Drops what has not started and stops the step that runs where it can be stopped. The stream stays
 * usable. */
ACL_FUNC_VISIBILITY aclError aclrtStreamAbort(aclrtStream stream);

/* Events
 *
 * An event marks a point in a stream. Life of an event:
 *   1. aclrtCreateEvent; it is recorded nowhere.
 *   2. aclrtRecordEvent puts the mark behind everything queued so far; recording again moves it.
 *   3. Other streams wait for the mark (aclrtStreamWaitEvent), or the host does
 *      (aclrtSynchronizeEvent). A waiter waits for the mark as it was when the wait was queued.
 *   4. aclrtDestroyEvent, at any time. */

/* What the event is for. CreateEvent gives one for all uses. */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_EVENT_DEVICE_USE_ONLY 0x00000010U
#define ACL_EVENT_EXTERNAL 0x00000020U
#define ACL_EVENT_IPC 0x00000040U

#define ACL_EVENT_RECORD_DEFAULT 0x0U
#define ACL_EVENT_RECORD_EXTERNAL 0x1U
#define ACL_EVENT_WAIT_DEFAULT 0x0U
#define ACL_EVENT_WAIT_EXTERNAL 0x1U

typedef enum aclrtEventStatus {
  ACL_EVENT_STATUS_COMPLETE = 0,
  ACL_EVENT_STATUS_NOT_READY = 1,
  ACL_EVENT_STATUS_RESERVED = 2
} aclrtEventStatus;

/* Mind the order: here 1 is complete. */
typedef enum aclrtEventRecordedStatus {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
  ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
  ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
  ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF
} aclrtEventWaitStatus;

/* Creates an event. Those of CreateEventExWithFlag count as complete while never recorded and do
 * not go with aclrtQueryEvent. 107000: no known flag, a value above 0x7f, or EXTERNAL or
 * DEVICE_USE_ONLY beside another flag. 207000 FEATURE_NOT_SUPPORT: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent *event);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

/* Destroys an event at once, without waiting. Waits already queued still wait for the recorded
 * point. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/* Records the event behind the work now in the stream; an earlier record is forgotten.
 * 100000: a flag other than ACL_EVENT_RECORD_DEFAULT and ACL_EVENT_RECORD_EXTERNAL. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream,
                                                      uint32_t flag);

/* Makes the event unrecorded at once; waits already queued keep the point they wait for.
 * 207000 FEATURE_NOT_SUPPORT: an event of aclrtCreateEventExWithFlag. */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* Look without waiting. Never recorded: QueryEvent says COMPLETE; QueryEventStatus says NOT_READY,
 * or COMPLETE for an Ex event. QueryEventWaitStatus says COMPLETE when no queued wait is left.
 * 207000 FEATURE_NOT_SUPPORT: QueryEvent on an Ex event. */
ACL_DEPRECATED_MESSAGE("use aclrtQueryEventStatus")
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event,
                                                   aclrtEventRecordedStatus *status);
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event,
                                                       aclrtEventWaitStatus *status);

/* Blocks the caller until the recorded point is reached; 0 at once when never recorded. Errors of
 * the stream stay for the stream's synchronise. timeout in ms: -1 for ever; 0 or less than -1 is
 * 107000. 507047 EVENT_SYNC_TIMEOUT: time is up. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Makes the stream wait for the recorded point before it goes on; nothing to wait for when never
 * recorded. timeout in s, 0 for ever. When it expires the stream fails: its next synchronise
 * returns 107019 WAIT_TIMEOUT. Without a time-out of its own the wait obeys
 * aclrtSetOpWaitTimeout. flag: ACL_EVENT_WAIT_DEFAULT or ACL_EVENT_WAIT_EXTERNAL. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                             int32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
                                                          uint32_t timeout, uint32_t flag);

/* Time between two recorded points, in ms; negative when end came first. 507000 INTERNAL_ERROR: one
 * was never recorded; 107006 EVENT_TIMESTAMP_INVALID: one is not reached yet, or its event keeps no
 * time. */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent,
                                                   aclrtEvent endEvent);

/* When the recorded point was reached, in us of a clock that only runs forward. Same codes. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);

/* A small number, unique among the living events; and how many more can be created. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId);
ACL_FUNC_VISIBILITY aclError aclrtGetEventAvailNum(uint32_t *eventCount);

/* The time-out, in s, of waits queued from now on that have none of their own; 0 for ever. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/* A limit, in s, for the run time of operators; stored only: kernels are never cut short. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);

/* Notifies
 *
 * A notify is a flag that one stream sets and one stream takes: WaitAndReset waits until it is set
 * and clears it. */

#define ACL_NOTIFY_DEFAULT 0x00000000U
#define ACL_NOTIFY_DEVICE_USE_ONLY 0x00000001U

ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);

/* Destroys at once, without waiting; records and waits already queued keep their meaning. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);

/* Sets the flag when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);

/* timeout in ms, 0 for ever. When it expires the stream fails: its next synchronise returns 107019
 * WAIT_TIMEOUT. */
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
                                                     uint32_t timeout);

/* A small number, unique among the living notifies. */
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId);

/* Host functions
 *
 * Two ways to run a function of the program in a stream's order. aclrtLaunchHostFunc runs it on the
 * stream's own thread. aclrtLaunchCallback hands it to a thread of the program which has
 * subscribed to the stream and calls aclrtProcessReport in a loop. Do not mix both on one stream.
 * Such a function must not wait for a stream, allocate or queue work. */

typedef void (*aclrtHostFunc)(void *args);
typedef void (*aclrtCallback)(void *userData);

typedef enum aclrtCallbackBlockType {
  ACL_CALLBACK_NO_BLOCK = 0, /* the stream goes on while the function runs */
  ACL_CALLBACK_BLOCK = 1     /* the stream waits for the function */
} aclrtCallbackBlockType;

/* Runs fn(args) when the stream gets there; the stream waits for it. args stays the caller's. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

/* threadId is the thread's pthread_self() as a number. A stream has one such thread.
 * 107011 STREAM_SUBSCRIBE, 107012 THREAD_SUBSCRIBE: subscribed already, or, in UnSubscribe, to
 * another thread. 107015 STREAM_NO_CB_REG: UnSubscribe without a subscription. */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/* Queues fn(userData). 107015 STREAM_NO_CB_REG: no thread has subscribed to the stream. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchCallback(aclrtCallback fn, void *userData,
                                                 aclrtCallbackBlockType blockType,
                                                 aclrtStream stream);

/* Waits for functions queued for the calling thread and runs them there. timeout in ms: -1 for
 * ever; 0 or less than -1 is 100000. 107012 THREAD_SUBSCRIBE: the thread is subscribed to no
 * stream; 507012 REPORT_TIMEOUT: nothing came. */
ACL_FUNC_VISIBILITY aclError aclrtProcessReport(int32_t timeout);

/* Memory */

/* Which pages to take. The HUGE policies ask for huge pages and do with normal ones when there are
 * none. The values from 0x0100 up are hints to be or-ed in; unknown values act as 0. */
typedef enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
  ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
  ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
  ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
  ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
  ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000
} aclrtMemMallocPolicy;

typedef enum aclrtMallocAttrType {
  ACL_RT_MEM_ATTR_RSV = 0,
  ACL_RT_MEM_ATTR_MODULE_ID = 1,
  ACL_RT_MEM_ATTR_DEVICE_ID = 2,
  ACL_RT_MEM_ATTR_VA_FLAG = 3
} aclrtMallocAttrType;

typedef union aclrtMallocAttrValue {
  uint16_t moduleId;
  uint32_t deviceId;
  uint32_t vaFlag;
  uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
  aclrtMallocAttrType attr;
  aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
  aclrtMallocAttribute *attrs;
  size_t numAttrs;
} aclrtMallocConfig;

typedef enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4, /* the addresses tell */
  ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
  ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7
} aclrtMemcpyKind;

typedef enum aclrtReduceKind {
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 10,
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 11,
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 12,
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL = 13
} aclrtReduceKind;

typedef enum aclrtMemAttr {
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5,
  ACL_DDR_MEM_P2P_HUGE = 6,
  ACL_DDR_MEM_P2P_NORMAL = 7,
  ACL_HBM_MEM_P2P_HUGE = 8,
  ACL_HBM_MEM_P2P_NORMAL = 9,
  ACL_HBM_MEM_HUGE1G = 10,
  ACL_HBM_MEM_P2P_HUGE1G = 11,
  ACL_MEM_NORMAL = 12,
  ACL_MEM_HUGE = 13,
  ACL_MEM_HUGE1G = 14,
  ACL_MEM_P2P_NORMAL = 15,
  ACL_MEM_P2P_HUGE = 16,
  ACL_MEM_P2P_HUGE1G = 17
} aclrtMemAttr;

typedef enum aclrtMemLocationType {
  ACL_MEM_LOCATION_TYPE_HOST = 0,
  ACL_MEM_LOCATION_TYPE_DEVICE = 1,
  ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2, /* memory this library did not allocate */
  ACL_MEM_LOCATION_TYPE_MANAGED = 3,
  ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4
} aclrtMemLocationType;

typedef struct aclrtMemLocation {
  uint32_t id; /* device, 0 for the host */
  aclrtMemLocationType type;
} aclrtMemLocation;

typedef struct aclrtPtrAttributes {
  aclrtMemLocation location;
  uint32_t pageSize; /* bytes */
  uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct aclrtMemcpyBatchAttr {
  aclrtMemLocation dstLoc;
  aclrtMemLocation srcLoc;
  uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

typedef struct aclrtMemUsageInfo {
  char name[32];
  uint64_t curMemSize;  /* bytes */
  uint64_t memPeakSize; /* bytes */
  size_t reserved[8];
} aclrtMemUsageInfo;

typedef enum aclrtHostRegisterType {
  ACL_HOST_REGISTER_MAPPED = 0,
  ACL_HOST_REGISTER_IOMEMORY = 4,
  ACL_HOST_REGISTER_READONLY = 8
} aclrtHostRegisterType;

#define ACL_HOST_REG_MAPPED 0x2UL
#define ACL_HOST_REG_IOMEMORY 0x4UL
#define ACL_HOST_REG_READONLY 0x8UL
#define ACL_HOST_REG_PINNED 0x10000000UL

/* Device memory, owned by the caller until aclrtFree or aclFinalize. The address is a multiple of
 * 64 at least; behind the size, rounded up to 32, lie 32 more bytes, and all this padding is zero.
 * The bytes asked for are not initialised. MallocAlign32 leaves out the 32 more; MallocCached is
 * aclrtMalloc by another name. cfg may be NULL; its attributes are checked, not obeyed.
 * 100000: size 0, or so large that the padding overflows; a cfg with a count and no attributes. */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void **devPtr, size_t size,
                                                aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void **devPtr, size_t size,
                                               aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void **devPtr, size_t size,
                                                aclrtMemMallocPolicy policy,
                                                aclrtMallocConfig *cfg);

/* Frees device memory at once: work that still uses it must have been waited for. FreeWithDevSync
 * waits for the device first. aclrtFree needs no context. 100000: NULL. 107000: not the start of
 * living memory from an aclrtMalloc function. After aclFinalize, which frees all, an unknown
 * address is no failure until the next aclInit. */
ACL_FUNC_VISIBILITY aclError aclrtFree(void *devPtr);
ACL_FUNC_VISIBILITY aclError aclrtFreeWithDevSync(void *devPtr);

/* Host memory for copies that do not wait; address a multiple of 64, size rounded up to 32. Owned
 * by the caller until its own free functions or aclFinalize. Codes as for device memory. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void **hostPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size,
                                                    aclrtMallocConfig *cfg);
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void *hostPtr);
ACL_FUNC_VISIBILITY aclError aclrtFreeHostWithDevSync(void *hostPtr);

/* Where an address lies. Memory of plain malloc is UNREGISTERED. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void *ptr,
                                                       aclrtPtrAttributes *attributes);

/* Makes memory of the program's own usable as pinned host memory, until Unregister; it must live
 * that long. devPtr receives the address under which the device sees it; V2 leaves that to
 * HostGetDevicePointer, whose flag must be 0. 507910 ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
 * 507911 ACL_ERROR_HOST_MEMORY_NOT_REGISTERED. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type,
                                               void **devPtr);
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void *ptr);

/* Cache upkeep; the arguments are checked, there is nothing to do. */
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void *devPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void *devPtr, size_t size);

/* Copies count bytes and returns when they are copied. It does not wait for any stream. kind is a
 * hint: the addresses tell the direction. count 0 returns 0 whatever the rest is; so does
 * dst == src. destMax is the room at dst. 100000: NULL, or a kind above 5.
 * 107000: count > destMax. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                                         aclrtMemcpyKind kind);

/* Queues the copy. With pageable host memory the call waits for the stream and copies before it
 * returns; with memory of aclrtMallocHost or aclrtHostRegister it returns at once, and both ranges
 * must live until the stream has passed. WithCondition is the same function by another name.
 * Codes as above; 207000 FEATURE_NOT_SUPPORT: ACL_MEMCPY_HOST_TO_HOST. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src,
                                              size_t count, aclrtMemcpyKind kind,
                                              aclrtStream stream);
ACL_DEPRECATED_MESSAGE("use aclrtMemcpyAsync")
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax,
                                                           const void *src, size_t count,
                                                           aclrtMemcpyKind kind,
                                                           aclrtStream stream);

/* numBatches copies in one call: sizes[i] bytes from srcs[i] to dsts[i], which has room for
 * destMaxs[i]. attrs[k] says where the memory lies for the copies from attrsIndexes[k] up to
 * attrsIndexes[k + 1]; attrsIndexes starts with 0 and ascends. On an error *failIndex is the copy
 * it is about, SIZE_MAX when it is about none; nothing after it was copied. The arrays may go when
 * the call returns. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs,
                                              size_t *sizes, size_t numBatches,
                                              aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
                                              size_t numAttrs, size_t *failIndex);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs,
                                                   size_t *sizes, size_t numBatches,
                                                   aclrtMemcpyBatchAttr *attrs,
                                                   size_t *attrsIndexes, size_t numAttrs,
                                                   size_t *failIndex, aclrtStream stream);

/* Copies height rows of width bytes; the starts of rows lie dpitch and spitch bytes apart. width or
 * height 0 returns 0. 100000: a width above a pitch, or a kind other than HOST_TO_DEVICE,
 * DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
                                           size_t width, size_t height, aclrtMemcpyKind kind);
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src,
                                                size_t spitch, size_t width, size_t height,
                                                aclrtMemcpyKind kind, aclrtStream stream);

/* Sets count bytes to the low 8 bits of value; maxCount is the room. count 0 returns 0.
 * 107000: count > maxCount. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value,
                                         size_t count);
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value,
                                              size_t count, aclrtStream stream);

/* Sets numElements words of 32 bits. 100000: devPtr is no multiple of 4, or the words do not fit
 * into memSize bytes. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32(void *devPtr, size_t memSize, uint32_t value,
                                            size_t numElements);
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32Async(void *devPtr, size_t memSize, uint32_t value,
                                                 size_t numElements, aclrtStream stream);

/* Free and total bytes of the current device's memory; 0 and 0 for a kind the device has not. For
 * the CPU device: the machine's memory. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/* Who uses how much: fills at most inputNum entries; *outputNum says how many. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo,
                                                  size_t inputNum, size_t *outputNum);

/* How aclrtValueWait compares the word w in memory with value. */
#define ACL_STREAM_WAIT_VALUE_GEQ 0x00000000U /* w - value >= 0 as a signed number */
#define ACL_STREAM_WAIT_VALUE_EQ 0x00000001U  /* w == value */
#define ACL_STREAM_WAIT_VALUE_AND 0x00000002U /* (w & value) != 0 */
#define ACL_STREAM_WAIT_VALUE_NOR 0x00000003U /* ~(w | value) != 0 */

/* Words of 64 bits as flags between streams: Write stores value when the stream gets there, Wait
 * holds the stream until the comparison is true. The memory must live until the stream has passed.
 * devAddr is a multiple of 8 (107008 ADDR_UNALIGNED). Write's flag must be 0; Wait's is one of the
 * four above. */
ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag,
                                             aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag,
                                            aclrtStream stream);

/* Addresses and physical memory, apart
 *
 * A program reserves a range of addresses, takes physical memory, and maps the one at the other:
 * memory of a device that is mapped side by side in a reservation is then device memory in one
 * piece, for copies and operators alike. Sizes of memory, and where it is mapped in a reservation,
 * are multiples of the granularity, 2 MiB.
 *
 *     aclrtReserveMemAddress(&range, 64 << 20, 0, NULL, 1);
 *     aclrtMallocPhysical(&memory, 2 << 20, &prop, 0);
 *     aclrtMapMem(range, 2 << 20, 0, memory, 0);
 *     ... device memory at range, 2 MiB ...
 *     aclrtUnmapMem(range);
 *     aclrtFreePhysical(memory);
 *     aclrtReleaseMemAddress(range);
 *
 * aclFinalize unmaps, frees and releases everything; doing so later is no failure until the next
 * aclInit. On the CPU device a process made by fork shares mapped memory with its parent. */

typedef enum aclrtMemHandleType {
  ACL_MEM_HANDLE_TYPE_NONE = 0,
  ACL_MEM_HANDLE_TYPE_POSIX = 2
} aclrtMemHandleType;

typedef enum aclrtMemAllocationType { ACL_MEM_ALLOCATION_TYPE_PINNED = 0 } aclrtMemAllocationType;

typedef struct aclrtPhysicalMemProp {
  aclrtMemHandleType handleType;
  aclrtMemAllocationType allocationType;
  aclrtMemAttr memAttr;
  aclrtMemLocation location;
  uint64_t reserve;
} aclrtPhysicalMemProp;

typedef enum aclrtMemGranularityOptions {
  ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
  ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF
} aclrtMemGranularityOptions;

/* What sizes of physical memory are multiples of. prop is as for aclrtMallocPhysical. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
                                                              aclrtMemGranularityOptions option,
                                                              size_t *granularity);

/* Reserves addresses, for devices of the current one's kind; a thread without a context reserves as
 * for device 0. size is rounded up. alignment must be 0 and expectPtr NULL; flags is 0 or 1 (huge
 * pages), which makes no difference. Touching an address at which nothing is mapped is a fault.
 * Release: virPtr is what Reserve gave, and nothing is mapped in the range any more. */
ACL_FUNC_VISIBILITY aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
                                                    void *expectPtr, uint64_t flags);
ACL_FUNC_VISIBILITY aclError aclrtReleaseMemAddress(void *virPtr);

/* Takes physical memory of the device prop->location.id, which is not initialised.
 * prop->location.type is ACL_MEM_LOCATION_TYPE_DEVICE, handleType and allocationType are 0, memAttr
 * is any; flags is 0. Freeing ends the handle; the memory itself lasts until it is unmapped
 * everywhere. */
ACL_FUNC_VISIBILITY aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
                                                 const aclrtPhysicalMemProp *prop, uint64_t flags);
ACL_FUNC_VISIBILITY aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/* Maps all of the memory: size is the size it was taken with, offset and flags are 0. The range
 * lies inside one reservation, and nothing is mapped in it yet. The memory may be mapped at several
 * places, and keeps its bytes while it is mapped nowhere. Unmap takes away again what was mapped at
 * this address, at once: work that still uses it must have been waited for.
 * 107000: a wrong place. */
ACL_FUNC_VISIBILITY aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
                                         aclrtDrvMemHandle handle, uint64_t flags);
ACL_FUNC_VISIBILITY aclError aclrtUnmapMem(void *virPtr);

/* Sharing physical memory with other processes: always refused with 207000 FEATURE_NOT_SUPPORT. */
ACL_FUNC_VISIBILITY aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
                                                             aclrtMemHandleType handleType,
                                                             uint64_t flags,
                                                             uint64_t *shareableHandle);
ACL_FUNC_VISIBILITY aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
                                                               int32_t deviceId,
                                                               aclrtDrvMemHandle *handle);
ACL_FUNC_VISIBILITY aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
                                                             size_t pidNum);

/* Kernels that were compiled for an Ascend processor
 *
 * They cannot run here: every function is refused with 207000 FEATURE_NOT_SUPPORT, whatever its
 * arguments. */

typedef enum aclrtBinaryLoadOptionType {
  ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
  ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC = 2,
  ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
  ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3
} aclrtBinaryLoadOptionType;

typedef union aclrtBinaryLoadOptionValue {
  uint32_t isLazyLoad;
  uint32_t magic;
  int32_t cpuKernelMode;
  uint32_t rsv[4];
} aclrtBinaryLoadOptionValue;

typedef struct aclrtBinaryLoadOption {
  aclrtBinaryLoadOptionType type;
  aclrtBinaryLoadOptionValue value;
} aclrtBinaryLoadOption;

typedef struct aclrtBinaryLoadOptions {
  aclrtBinaryLoadOption *options;
  size_t numOpt;
} aclrtBinaryLoadOptions;

ACL_FUNC_VISIBILITY aclError aclrtBinaryLoadFromData(const void *data, size_t length,
                                                     const aclrtBinaryLoadOptions *options,
                                                     aclrtBinHandle *binHandle);
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle,
                                                    const char *kernelName,
                                                    aclrtFuncHandle *funcHandle);
ACL_FUNC_VISIBILITY aclError aclrtGetFunctionAddr(aclrtFuncHandle funcHandle, void **aicAddr,
                                                  void **aivAddr);

#ifdef __cplusplus
}
#endif

#endif
