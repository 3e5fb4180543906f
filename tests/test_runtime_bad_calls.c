/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the runtime and of the aclnn base with every argument wrong in every way of its
 * kind, alone and in pairs, and from a thread without a context.  Each call must give its code and
 * one sentence, write no result and leave no handle.  The codes are those of the headers: a kind of
 * argument has them once, in the first table, and the second table says which kinds a function
 * takes. */
#include <pthread.h>

#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "bad_report.h"

/* Some of the functions are deprecated and must be right all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* --- what arguments are made of ----------------------------------------------------------------
 */

enum { OUT_BYTES = 1024, BLOCK_BYTES = 256, OUT_BYTE = 0x5a, PARAMETERS_MAX = 10, WRONGS_MAX = 8 };

/* Things that have no number before the test has made them. */
enum thing {
  NOTHING,
  RESULT, /* OUT_BYTES that nobody may write */
  HOST,
  BLOCK,
  ODD_BLOCK,
  INVENTED, /* an address that is no handle */
  LIVE_STREAM,
  DEAD_STREAM,
  ALIEN_STREAM, /* of another context */
  DEFAULT_STREAM,
  LIVE_EVENT,
  DEAD_EVENT,
  LIVE_NOTIFY,
  DEAD_NOTIFY,
  LIVE_CONTEXT,
  DEAD_CONTEXT,
  DEFAULT_CONTEXT,
  LIVE_CONFIG,
  DEAD_CONFIG,
  LIVE_TENSOR,
  DEAD_TENSOR,
  LIVE_SCALAR,
  LIVE_INTS,
  LIVE_FLOATS,
  LIVE_BOOLS,
  LIVE_TENSORS,
  LIVE_SCALARS,
  LIVE_EXECUTOR,
  DEAD_EXECUTOR,
  FUNCTION,
  DEVICES, /* how many there are */
  THINGS
};
static uintptr_t things[THINGS];

/* A value is a number, or a thing. */
struct value {
  bool is_thing;
  int64_t number;
};
#define N(value) \
  { false, (value) }
#define T(thing) \
  { true, (thing) }

/* --- the first table: kinds of arguments, a right value and the wrong ones ----------------------
 */

static const struct kind {
  const char *word;
  struct value right;
  struct {
    int code;
    struct value value;
  } wrongs[WRONGS_MAX]; /* up to the first code 0 */
} kinds[] = {
    {"any", N(0), {{0}}},
    {"written", T(RESULT), {{0}}}, /* documented to be written on failure, too */
    {"result", T(RESULT), {{100000, T(NOTHING)}}},
    {"pointer", T(HOST), {{100000, T(NOTHING)}}},
    {"function", T(FUNCTION), {{100000, T(NOTHING)}}},
    {"listener", T(FUNCTION), {{107000, T(NOTHING)}}},
    {"stream",
     T(LIVE_STREAM),
     {{107017, T(DEAD_STREAM)},
      {107017, T(LIVE_EVENT)},
      {107017, T(LIVE_TENSOR)},
      {107017, T(INVENTED)},
      {107003, T(ALIEN_STREAM)}}},
    {"own_stream",
     T(LIVE_STREAM),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_STREAM)},
      {107017, T(LIVE_EVENT)},
      {107017, T(INVENTED)},
      {107017, T(DEFAULT_STREAM)},
      {107003, T(ALIEN_STREAM)}}},
    {"event",
     T(LIVE_EVENT),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_EVENT)},
      {107017, T(LIVE_STREAM)},
      {107017, T(LIVE_TENSOR)},
      {107017, T(INVENTED)}}},
    {"notify",
     T(LIVE_NOTIFY),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_NOTIFY)},
      {107017, T(LIVE_EVENT)},
      {107017, T(INVENTED)}}},
    {"context", /* to be made current */
     T(LIVE_CONTEXT),
     {{100000, T(NOTHING)},
      {107000, T(DEAD_CONTEXT)},
      {107000, T(LIVE_STREAM)},
      {107000, T(INVENTED)}}},
    {"own_context", /* to be destroyed */
     T(LIVE_CONTEXT),
     {{100000, T(NOTHING)},
      {107002, T(DEAD_CONTEXT)},
      {107002, T(DEFAULT_CONTEXT)},
      {107002, T(LIVE_STREAM)},
      {107002, T(INVENTED)}}},
    {"config",
     T(LIVE_CONFIG),
     {{100000, T(NOTHING)},
      {107017, T(DEAD_CONFIG)},
      {107017, T(LIVE_STREAM)},
      {107017, T(INVENTED)}}},
    {"device",
     N(0),
     {{107001, N(-1)}, {107001, T(DEVICES)}, {107001, N(INT32_MAX)}, {107001, N(INT32_MIN)}}},
    /* enumerators from 0 to a last one */
    {"to_0", N(0), {{100000, N(-1)}, {100000, N(1)}, {100000, N(INT32_MAX)}}},
    {"to_1", N(1), {{100000, N(-1)}, {100000, N(2)}, {100000, N(INT32_MAX)}}},
    {"to_2", N(2), {{100000, N(-1)}, {100000, N(3)}, {100000, N(INT32_MIN)}}},
    {"to_3", N(3), {{100000, N(-1)}, {100000, N(4)}, {100000, N(INT32_MAX)}}},
    {"to_7", N(1), {{100000, N(-1)}, {100000, N(8)}, {100000, N(INT32_MIN)}}},
    {"to_17", N(1), {{100000, N(-1)}, {100000, N(18)}, {100000, N(INT32_MAX)}}},
    {"attribute", N(601), {{207000, N(0)}, {207000, N(-1)}, {207000, N(602)}}},
    {"feature", N(1), {{100000, N(0)}, {100000, N(-1)}, {100000, N(99)}}},
    {"stream_attribute", N(1), {{100000, N(0)}, {100000, N(-1)}, {100000, N(6)}}},
    {"register_type", N(0), {{100000, N(-1)}, {100000, N(1)}, {100000, N(99)}}},
    {"record_flag", N(0), {{100000, N(2)}, {100000, N(UINT32_MAX)}}},
    {"saturation", N(0), {{107000, N(-1)}, {107000, N(3)}, {107000, N(INT32_MAX)}}},
    {"event_flag",
     N(1),
     {{107000, N(0)}, {107000, N(0x80)}, {107000, N(0x21)}, {107000, N(0x18)}, {207000, N(0x40)}}},
    {"level", N(0), {{107000, N(-1)}, {107000, N(4)}, {107000, N(INT64_MIN)}}}, /* of determinism */
    /* numbers */
    {"size", N(64), {{100000, N(0)}}},
    {"memory_size", N(64), {{100000, N(0)}, {100000, N(-1)}, {100000, N(-64)}}},
    {"config_size", N(4), {{100000, N(0)}, {100000, N(8)}, {100000, N(-1)}}},
    {"ms", N(1), {{107000, N(0)}, {107000, N(-2)}, {107000, N(INT32_MIN)}}},
    {"ms_or_0", N(1), {{107000, N(-2)}, {107000, N(INT32_MIN)}}},
    {"report_ms", N(1), {{100000, N(0)}, {100000, N(-2)}, {100000, N(INT32_MIN)}}},
    {"seconds", N(1), {{107000, N(-1)}, {107000, N(INT32_MIN)}}},
    /* memory */
    {"freed", T(INVENTED), {{100000, T(NOTHING)}, {107000, T(INVENTED)}, {107000, T(ODD_BLOCK)}}},
    {"unregistered", T(INVENTED), {{100000, T(NOTHING)}, {507911, T(INVENTED)}}},
    {"room", N(64), {{107000, N(0)}, {107000, N(63)}}},       /* of a copy of 64 bytes */
    {"pitch", N(64), {{100000, N(0)}, {100000, N(63)}}},      /* of rows of 64 bytes */
    {"words_room", N(64), {{100000, N(0)}, {100000, N(63)}}}, /* of 16 words */
    {"bytes", N(64), {{107000, N(65)}, {107000, N(-1)}}},     /* of a room of 64 */
    {"words", N(16), {{100000, N(17)}, {100000, N(-1)}}},     /* likewise */
    {"count", N(64), {{0}}},
    {"rows", N(1), {{0}}},
    {"sixteen", N(16), {{0}}},
    {"block", T(BLOCK), {{100000, T(NOTHING)}}},
    {"word_block", T(BLOCK), {{100000, T(NOTHING)}, {100000, T(ODD_BLOCK)}}},
    {"value_block", T(BLOCK), {{100000, T(NOTHING)}, {107008, T(ODD_BLOCK)}}},
    {"kind", N(1), {{100000, N(-1)}, {100000, N(6)}, {100000, N(INT32_MAX)}}},
    {"async_kind", N(1), {{100000, N(-1)}, {100000, N(6)}, {207000, N(0)}}},
    {"pitch_kind", N(1), {{100000, N(-1)}, {100000, N(0)}, {100000, N(5)}, {100000, N(6)}}},
    /* the aclnn base */
    {"nn_result", T(RESULT), {{161001, T(NOTHING)}}},
    {"tensor",
     T(LIVE_TENSOR),
     {{161001, T(NOTHING)},
      {161002, T(DEAD_TENSOR)},
      {161002, T(LIVE_INTS)},
      {161002, T(INVENTED)}}},
    {"own_tensor",
     T(LIVE_TENSOR),
     {{161002, T(DEAD_TENSOR)}, {161002, T(LIVE_INTS)}, {161002, T(INVENTED)}}},
    {"ints", T(LIVE_INTS), {{161001, T(NOTHING)}, {161002, T(LIVE_FLOATS)}, {161002, T(INVENTED)}}},
    {"floats",
     T(LIVE_FLOATS),
     {{161001, T(NOTHING)}, {161002, T(LIVE_BOOLS)}, {161002, T(INVENTED)}}},
    {"bools", T(LIVE_BOOLS), {{161001, T(NOTHING)}, {161002, T(LIVE_INTS)}, {161002, T(INVENTED)}}},
    {"tensors",
     T(LIVE_TENSORS),
     {{161001, T(NOTHING)}, {161002, T(LIVE_SCALARS)}, {161002, T(INVENTED)}}},
    {"scalars",
     T(LIVE_SCALARS),
     {{161001, T(NOTHING)}, {161002, T(LIVE_TENSORS)}, {161002, T(INVENTED)}}},
    {"own_array", T(LIVE_INTS), {{161002, T(LIVE_EVENT)}, {161002, T(INVENTED)}}},
    {"executor",
     T(LIVE_EXECUTOR),
     {{561103, T(NOTHING)},
      {561000, T(DEAD_EXECUTOR)},
      {561000, T(LIVE_TENSOR)},
      {561000, T(INVENTED)}}},
    {"operand",
     T(LIVE_TENSOR),
     {{561103, T(NOTHING)}, {161002, T(DEAD_TENSOR)}, {161002, T(INVENTED)}}},
    {"operands", T(LIVE_TENSORS), {{561103, T(NOTHING)}, {161002, T(INVENTED)}}},
    {"member", N(0), {{161002, N(1)}, {161002, N(-1)}}},
    {"nn_name", T(HOST), {{161001, T(NOTHING)}}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* --- the second table: the functions -----------------------------------------------------------
 */

/* An argument of a call, as the type the function wants. */
#define P(type, i) ((type)a[i])
#define I32(i) ((int32_t)a[i])
#define U32(i) ((uint32_t)a[i])
#define ENUM(type, i) ((type)(int32_t)a[i])
#define SIZE(i) ((size_t)a[i])
#define PTR(i) ((void *)a[i])

/* F(name, arguments, "word:kind ...", whether it needs a context).  The word is what the sentence
 * calls the argument: its name, or "device", "attribute", "event". */
#define FUNCTIONS(F)                                                                               \
  F(aclsysGetCANNVersion, (ENUM(aclCANNPackageName, 0), PTR(1)), "name:to_7 version:result", 0)    \
  F(aclsysGetVersionStr, (PTR(0), PTR(1)), "pkgName:pointer versionStr:result", 0)                 \
  F(aclsysGetVersionNum, (PTR(0), PTR(1)), "pkgName:pointer versionNum:result", 0)                 \
  F(aclrtGetVersion, (PTR(0), PTR(1), PTR(2)),                                                     \
    "majorVersion:result minorVersion:result patchVersion:result", 0)                              \
  F(aclrtPeekAtLastError, (ENUM(aclrtLastErrLevel, 0)), "level:to_0", 0)                           \
  F(aclrtGetLastError, (ENUM(aclrtLastErrLevel, 0)), "level:to_0", 0)                              \
  F(aclrtExceptionInfoCallbackRegister, (P(aclrtExceptionInfoCallback, 0)), "callback:listener",   \
    0)                                                                                             \
  F(aclrtExceptionInfoCallbackUnregister, (P(aclrtExceptionInfoCallback, 0)), "callback:listener", \
    0)                                                                                             \
  F(aclrtGetErrorVerbose, (I32(0), PTR(1)), "device:device errorInfo:result", 0)                   \
  F(aclrtSetDevice, (I32(0)), "device:device", 0)                                                  \
  F(aclrtResetDevice, (I32(0)), "device:device", 0)                                                \
  F(aclrtResetDeviceForce, (I32(0)), "device:device", 0)                                           \
  F(aclrtGetDevice, (PTR(0)), "deviceId:result", 1)                                                \
  F(aclrtGetDeviceCount, (PTR(0)), "count:result", 0)                                              \
  F(aclrtGetRunMode, (PTR(0)), "runMode:result", 0)                                                \
  F(aclrtSynchronizeDeviceWithTimeout, (I32(0)), "timeout:ms_or_0", 1)                             \
  F(aclrtSetTsDevice, (ENUM(aclrtTsId, 0)), "tsId:to_1", 0)                                        \
  F(aclrtGetDeviceUtilizationRate, (I32(0), PTR(1)), "device:device utilizationInfo:result", 0)    \
  F(aclrtQueryDeviceStatus, (I32(0), PTR(1)), "device:device deviceStatus:result", 0)              \
  F(aclrtGetDeviceInfo, (U32(0), ENUM(aclrtDevAttr, 1), PTR(2)),                                   \
    "device:device attr:attribute value:result", 0)                                                \
  F(aclrtGetDeviceCapability, (I32(0), ENUM(aclrtDevFeatureType, 1), PTR(2)),                      \
    "device:device devFeatureType:feature value:result", 0)                                        \
  F(aclrtDeviceCanAccessPeer, (PTR(0), I32(1), I32(2)),                                            \
    "canAccessPeer:result device:device peerDeviceId:any", 0)                                      \
  F(aclrtDeviceEnablePeerAccess, (I32(0), U32(1)), "device:device flags:any", 0)                   \
  F(aclrtDeviceDisablePeerAccess, (I32(0)), "device:device", 0)                                    \
  F(aclrtGetDeviceResLimit, (I32(0), ENUM(aclrtDevResLimitType, 1), PTR(2)),                       \
    "device:device type:to_1 value:result", 0)                                                     \
  F(aclrtSetDeviceResLimit, (I32(0), ENUM(aclrtDevResLimitType, 1), U32(2)),                       \
    "device:device type:to_1 value:count", 0)                                                      \
  F(aclrtResetDeviceResLimit, (I32(0)), "device:device", 0)                                        \
  F(aclrtGetStreamResLimit, (PTR(0), ENUM(aclrtDevResLimitType, 1), PTR(2)),                       \
    "stream:stream type:to_1 value:result", 1)                                                     \
  F(aclrtSetStreamResLimit, (PTR(0), ENUM(aclrtDevResLimitType, 1), U32(2)),                       \
    "stream:stream type:to_1 value:count", 1)                                                      \
  F(aclrtResetStreamResLimit, (PTR(0)), "stream:stream", 1)                                        \
  F(aclrtUseStreamResInCurrentThread, (PTR(0)), "stream:stream", 1)                                \
  F(aclrtUnuseStreamResInCurrentThread, (PTR(0)), "stream:stream", 1)                              \
  F(aclrtGetResInCurrentThread, (ENUM(aclrtDevResLimitType, 0), PTR(1)), "type:to_1 value:result", \
    0)                                                                                             \
  F(aclrtSetDeviceSatMode, (ENUM(aclrtFloatOverflowMode, 0)), "mode:saturation", 0)                \
  F(aclrtGetDeviceSatMode, (PTR(0)), "mode:result", 0)                                             \
  F(aclrtCheckArchCompatibility, (PTR(0), PTR(1)), "socVersion:pointer canCompatible:result", 0)   \
  F(aclrtCreateContext, (PTR(0), I32(1)), "context:result device:device", 0)                       \
  F(aclrtDestroyContext, (PTR(0)), "context:own_context", 0)                                       \
  F(aclrtSetCurrentContext, (PTR(0)), "context:context", 0)                                        \
  F(aclrtGetCurrentContext, (PTR(0)), "context:result", 1)                                         \
  F(aclrtCtxGetCurrentDefaultStream, (PTR(0)), "stream:result", 1)                                 \
  F(aclrtGetPrimaryCtxState, (I32(0), PTR(1), PTR(2)), "device:device flags:any active:result", 0) \
  F(aclrtCtxGetSysParamOpt, (ENUM(aclSysParamOpt, 0), PTR(1)), "opt:to_2 value:result", 1)         \
  F(aclrtCtxSetSysParamOpt, (ENUM(aclSysParamOpt, 0), (int64_t)a[1]), "opt:to_2 value:any", 1)     \
  F(aclrtGetSysParamOpt, (ENUM(aclSysParamOpt, 0), PTR(1)), "opt:to_3 value:result", 0)            \
  F(aclrtSetSysParamOpt, (ENUM(aclSysParamOpt, 0), (int64_t)a[1]), "opt:any value:level", 0)       \
  F(aclrtDestroyStreamConfigHandle, (PTR(0)), "handle:config", 0)                                  \
  F(aclrtSetStreamConfigOpt, (PTR(0), ENUM(aclrtStreamConfigAttr, 1), PTR(2), SIZE(3)),            \
    "handle:config attr:to_3 attrValue:pointer valueSize:config_size", 0)                          \
  F(aclrtCreateStream, (PTR(0)), "stream:result", 1)                                               \
  F(aclrtCreateStreamV2, (PTR(0), PTR(1)), "stream:result handle:config", 1)                       \
  F(aclrtCreateStreamWithConfig, (PTR(0), U32(1), U32(2)), "stream:result priority:any flag:any",  \
    1)                                                                                             \
  F(aclrtDestroyStream, (PTR(0)), "stream:own_stream", 0)                                          \
  F(aclrtDestroyStreamForce, (PTR(0)), "stream:own_stream", 0)                                     \
  F(aclrtSynchronizeStream, (PTR(0)), "stream:stream", 1)                                          \
  F(aclrtSynchronizeStreamWithTimeout, (PTR(0), I32(1)), "stream:stream timeout:ms", 1)            \
  F(aclrtStreamQuery, (PTR(0), PTR(1)), "stream:stream status:result", 1)                          \
  F(aclrtStreamGetPriority, (PTR(0), PTR(1)), "stream:stream priority:result", 1)                  \
  F(aclrtStreamGetFlags, (PTR(0), PTR(1)), "stream:stream flags:result", 1)                        \
  F(aclrtStreamGetId, (PTR(0), PTR(1)), "stream:stream streamId:result", 1)                        \
  F(aclrtGetStreamAvailableNum, (PTR(0)), "streamCount:result", 0)                                 \
  F(aclrtSetStreamFailureMode, (PTR(0), (uint64_t)a[1]), "stream:stream mode:any", 1)              \
  F(aclrtSetStreamAttribute, (PTR(0), ENUM(aclrtStreamAttr, 1), PTR(2)),                           \
    "stream:stream attribute:stream_attribute value:pointer", 1)                                   \
  F(aclrtGetStreamAttribute, (PTR(0), ENUM(aclrtStreamAttr, 1), PTR(2)),                           \
    "stream:stream attribute:stream_attribute value:result", 1)                                    \
  F(aclrtSetStreamOverflowSwitch, (PTR(0), U32(1)), "stream:stream flag:any", 1)                   \
  F(aclrtGetStreamOverflowSwitch, (PTR(0), PTR(1)), "stream:stream flag:result", 1)                \
  F(aclrtStreamAbort, (PTR(0)), "stream:stream", 1)                                                \
  F(aclrtCreateEvent, (PTR(0)), "event:result", 1)                                                 \
  F(aclrtCreateEventWithFlag, (PTR(0), U32(1)), "event:result flag:event_flag", 1)                 \
  F(aclrtCreateEventExWithFlag, (PTR(0), U32(1)), "event:result flag:event_flag", 1)               \
  F(aclrtDestroyEvent, (PTR(0)), "event:event", 0)                                                 \
  F(aclrtRecordEvent, (PTR(0), PTR(1)), "event:event stream:stream", 1)                            \
  F(aclrtRecordEventWithFlag, (PTR(0), PTR(1), U32(2)),                                            \
    "event:event stream:stream flag:record_flag", 1)                                               \
  F(aclrtResetEvent, (PTR(0), PTR(1)), "event:event stream:stream", 1)                             \
  F(aclrtQueryEvent, (PTR(0), PTR(1)), "event:event status:result", 0)                             \
  F(aclrtQueryEventStatus, (PTR(0), PTR(1)), "event:event status:result", 0)                       \
  F(aclrtQueryEventWaitStatus, (PTR(0), PTR(1)), "event:event status:result", 0)                   \
  F(aclrtSynchronizeEvent, (PTR(0)), "event:event", 0)                                             \
  F(aclrtSynchronizeEventWithTimeout, (PTR(0), I32(1)), "event:event timeout:ms", 0)               \
  F(aclrtStreamWaitEvent, (PTR(0), PTR(1)), "stream:stream event:event", 1)                        \
  F(aclrtStreamWaitEventWithTimeout, (PTR(0), PTR(1), I32(2)),                                     \
    "stream:stream event:event timeout:seconds", 1)                                                \
  F(aclrtStreamWaitEventWithFlag, (PTR(0), PTR(1), U32(2), U32(3)),                                \
    "stream:stream event:event timeout:any flag:any", 1)                                           \
  F(aclrtEventElapsedTime, (PTR(0), PTR(1), PTR(2)), "ms:result startEvent:event endEvent:event",  \
    0)                                                                                             \
  F(aclrtEventGetTimestamp, (PTR(0), PTR(1)), "event:event timestamp:result", 0)                   \
  F(aclrtGetEventId, (PTR(0), PTR(1)), "event:event eventId:result", 0)                            \
  F(aclrtGetEventAvailNum, (PTR(0)), "eventCount:result", 0)                                       \
  F(aclrtCreateNotify, (PTR(0), (uint64_t)a[1]), "notify:result flag:any", 1)                      \
  F(aclrtDestroyNotify, (PTR(0)), "notify:notify", 0)                                              \
  F(aclrtRecordNotify, (PTR(0), PTR(1)), "notify:notify stream:stream", 1)                         \
  F(aclrtWaitAndResetNotify, (PTR(0), PTR(1), U32(2)),                                             \
    "notify:notify stream:stream timeout:count", 1)                                                \
  F(aclrtGetNotifyId, (PTR(0), PTR(1)), "notify:notify notifyId:result", 0)                        \
  F(aclrtLaunchHostFunc, (PTR(0), P(aclrtHostFunc, 1), PTR(2)),                                    \
    "stream:stream fn:function args:any", 1)                                                       \
  F(aclrtSubscribeReport, ((uint64_t)a[0], PTR(1)), "threadId:count stream:stream", 1)             \
  F(aclrtUnSubscribeReport, ((uint64_t)a[0], PTR(1)), "threadId:count stream:stream", 1)           \
  F(aclrtLaunchCallback, (P(aclrtCallback, 0), PTR(1), ENUM(aclrtCallbackBlockType, 2), PTR(3)),   \
    "fn:function userData:any blockType:to_1 stream:stream", 1)                                    \
  F(aclrtProcessReport, (I32(0)), "timeout:report_ms", 0)                                          \
  F(aclrtMalloc, (PTR(0), SIZE(1), ENUM(aclrtMemMallocPolicy, 2)),                                 \
    "devPtr:result size:memory_size policy:any", 1)                                                \
  F(aclrtMallocAlign32, (PTR(0), SIZE(1), ENUM(aclrtMemMallocPolicy, 2)),                          \
    "devPtr:result size:memory_size policy:any", 1)                                                \
  F(aclrtMallocCached, (PTR(0), SIZE(1), ENUM(aclrtMemMallocPolicy, 2)),                           \
    "devPtr:result size:memory_size policy:any", 1)                                                \
  F(aclrtMallocWithCfg, (PTR(0), SIZE(1), ENUM(aclrtMemMallocPolicy, 2), PTR(3)),                  \
    "devPtr:result size:memory_size policy:any cfg:any", 1)                                        \
  F(aclrtFree, (PTR(0)), "devPtr:freed", 0)                                                        \
  F(aclrtFreeWithDevSync, (PTR(0)), "devPtr:freed", 0)                                             \
  F(aclrtMallocHost, (PTR(0), SIZE(1)), "hostPtr:result size:memory_size", 1)                      \
  F(aclrtMallocHostWithCfg, (PTR(0), (uint64_t)a[1], PTR(2)),                                      \
    "ptr:result size:memory_size cfg:any", 1)                                                      \
  F(aclrtFreeHost, (PTR(0)), "hostPtr:freed", 0)                                                   \
  F(aclrtFreeHostWithDevSync, (PTR(0)), "hostPtr:freed", 0)                                        \
  F(aclrtPointerGetAttributes, (PTR(0), PTR(1)), "ptr:pointer attributes:result", 0)               \
  F(aclrtHostRegister, (PTR(0), (uint64_t)a[1], ENUM(aclrtHostRegisterType, 2), PTR(3)),           \
    "ptr:pointer size:size type:register_type devPtr:result", 1)                                   \
  F(aclrtHostRegisterV2, (PTR(0), (uint64_t)a[1], U32(2)), "ptr:pointer size:size flag:any", 1)    \
  F(aclrtHostGetDevicePointer, (PTR(0), PTR(1), U32(2)),                                           \
    "pHost:unregistered pDevice:result flag:any", 0)                                               \
  F(aclrtHostUnregister, (PTR(0)), "ptr:unregistered", 0)                                          \
  F(aclrtMemFlush, (PTR(0), SIZE(1)), "devPtr:block size:size", 0)                                 \
  F(aclrtMemInvalidate, (PTR(0), SIZE(1)), "devPtr:block size:size", 0)                            \
  F(aclrtMemcpy, (PTR(0), SIZE(1), PTR(2), SIZE(3), ENUM(aclrtMemcpyKind, 4)),                     \
    "dst:block destMax:room src:pointer count:count kind:kind", 1)                                 \
  F(aclrtMemcpyAsync, (PTR(0), SIZE(1), PTR(2), SIZE(3), ENUM(aclrtMemcpyKind, 4), PTR(5)),        \
    "dst:block destMax:room src:pointer count:count kind:async_kind stream:stream", 1)             \
  F(aclrtMemcpyAsyncWithCondition,                                                                 \
    (PTR(0), SIZE(1), PTR(2), SIZE(3), ENUM(aclrtMemcpyKind, 4), PTR(5)),                          \
    "dst:block destMax:room src:pointer count:count kind:async_kind stream:stream", 1)             \
  F(aclrtMemcpy2d, (PTR(0), SIZE(1), PTR(2), SIZE(3), SIZE(4), SIZE(5), ENUM(aclrtMemcpyKind, 6)), \
    "dst:block dpitch:pitch src:pointer spitch:pitch width:count height:rows kind:pitch_kind", 1)  \
  F(aclrtMemcpy2dAsync,                                                                            \
    (PTR(0), SIZE(1), PTR(2), SIZE(3), SIZE(4), SIZE(5), ENUM(aclrtMemcpyKind, 6), PTR(7)),        \
    "dst:block dpitch:pitch src:pointer spitch:pitch width:count height:rows kind:pitch_kind "     \
    "stream:stream",                                                                               \
    1)                                                                                             \
  F(aclrtMemset, (PTR(0), SIZE(1), I32(2), SIZE(3)),                                               \
    "devPtr:block maxCount:count value:any count:bytes", 1)                                        \
  F(aclrtMemsetAsync, (PTR(0), SIZE(1), I32(2), SIZE(3), PTR(4)),                                  \
    "devPtr:block maxCount:count value:any count:bytes stream:stream", 1)                          \
  F(aclrtMemsetD32, (PTR(0), SIZE(1), U32(2), SIZE(3)),                                            \
    "devPtr:word_block memSize:count value:any numElements:words", 1)                              \
  F(aclrtMemsetD32Async, (PTR(0), SIZE(1), U32(2), SIZE(3), PTR(4)),                               \
    "devPtr:word_block memSize:words_room value:any numElements:sixteen stream:stream", 1)         \
  F(aclrtGetMemInfo, (ENUM(aclrtMemAttr, 0), PTR(1), PTR(2)),                                      \
    "attr:to_17 free:result total:result", 1)                                                      \
  F(aclrtGetMemUsageInfo, (I32(0), PTR(1), SIZE(2), PTR(3)),                                       \
    "device:device memUsageInfo:result inputNum:rows outputNum:result", 0)                         \
  F(aclrtValueWrite, (PTR(0), (uint64_t)a[1], U32(2), PTR(3)),                                     \
    "devAddr:value_block value:any flag:any stream:stream", 1)                                     \
  F(aclrtValueWait, (PTR(0), (uint64_t)a[1], U32(2), PTR(3)),                                      \
    "devAddr:value_block value:any flag:any stream:stream", 1)                                     \
  F(aclGetCannAttributeList, (PTR(0), PTR(1)), "cannAttrList:result num:result", 0)                \
  F(aclGetCannAttribute, (ENUM(aclCannAttr, 0), PTR(1)), "cannAttr:to_2 value:result", 0)          \
  F(aclGetDeviceCapability, (U32(0), ENUM(aclDeviceInfo, 1), PTR(2)),                              \
    "device:device deviceInfo:to_2 value:result", 0)                                               \
  F(aclDestroyTensor, (PTR(0)), "tensor:own_tensor", 0)                                            \
  F(aclInitTensor, (PTR(0), NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL),            \
    "tensor:tensor", 0)                                                                            \
  F(aclGetViewShape, (PTR(0), PTR(1), PTR(2)),                                                     \
    "tensor:tensor viewDims:nn_result viewDimsNum:nn_result", 0)                                   \
  F(aclGetStorageShape, (PTR(0), PTR(1), PTR(2)),                                                  \
    "tensor:tensor storageDims:nn_result storageDimsNum:nn_result", 0)                             \
  F(aclGetViewStrides, (PTR(0), PTR(1), PTR(2)),                                                   \
    "tensor:tensor stridesValue:nn_result stridesNum:nn_result", 0)                                \
  F(aclGetViewOffset, (PTR(0), PTR(1)), "tensor:tensor offset:nn_result", 0)                       \
  F(aclGetFormat, (PTR(0), PTR(1)), "tensor:tensor format:nn_result", 0)                           \
  F(aclGetDataType, (PTR(0), PTR(1)), "tensor:tensor dataType:nn_result", 0)                       \
  F(aclSetRawTensorAddr, (PTR(0), PTR(1)), "tensor:tensor addr:any", 0)                            \
  F(aclGetRawTensorAddr, (PTR(0), PTR(1)), "tensor:tensor addr:nn_result", 0)                      \
  F(aclGetIntArraySize, (PTR(0), PTR(1)), "array:ints size:nn_result", 0)                          \
  F(aclGetFloatArraySize, (PTR(0), PTR(1)), "array:floats size:nn_result", 0)                      \
  F(aclGetBoolArraySize, (PTR(0), PTR(1)), "array:bools size:nn_result", 0)                        \
  F(aclGetTensorListSize, (PTR(0), PTR(1)), "list:tensors size:nn_result", 0)                      \
  F(aclGetScalarListSize, (PTR(0), PTR(1)), "list:scalars size:nn_result", 0)                      \
  F(aclDestroyIntArray, (PTR(0)), "argument:own_array", 0)                                         \
  F(aclDestroyFloatArray, (PTR(0)), "argument:own_array", 0)                                       \
  F(aclDestroyBoolArray, (PTR(0)), "argument:own_array", 0)                                        \
  F(aclDestroyScalar, (PTR(0)), "argument:own_array", 0)                                           \
  F(aclDestroyTensorList, (PTR(0)), "argument:own_array", 0)                                       \
  F(aclDestroyScalarList, (PTR(0)), "argument:own_array", 0)                                       \
  F(aclSetAclOpExecutorRepeatable, (PTR(0)), "executor:executor", 0)                               \
  F(aclDestroyAclOpExecutor, (PTR(0)), "executor:executor", 0)                                     \
  F(aclSetInputTensorAddr, (PTR(0), SIZE(1), PTR(2), PTR(3)),                                      \
    "executor:executor index:any tensor:operand addr:any", 0)                                      \
  F(aclSetOutputTensorAddr, (PTR(0), SIZE(1), PTR(2), PTR(3)),                                     \
    "executor:executor index:any tensor:operand addr:any", 0)                                      \
  F(aclSetTensorAddr, (PTR(0), SIZE(1), PTR(2), PTR(3)),                                           \
    "executor:executor index:any tensor:operand addr:any", 0)                                      \
  F(aclSetDynamicInputTensorAddr, (PTR(0), SIZE(1), SIZE(2), PTR(3), PTR(4)),                      \
    "executor:executor irIndex:any relativeIndex:member tensors:operands addr:any", 0)             \
  F(aclSetDynamicOutputTensorAddr, (PTR(0), SIZE(1), SIZE(2), PTR(3), PTR(4)),                     \
    "executor:executor irIndex:any relativeIndex:member tensors:operands addr:any", 0)             \
  F(aclSetDynamicTensorAddr, (PTR(0), SIZE(1), SIZE(2), PTR(3), PTR(4)),                           \
    "executor:executor irIndex:any relativeIndex:member tensors:operands addr:any", 0)             \
  F(aclDumpOpTensors, (PTR(0), PTR(1), PTR(2), SIZE(3), SIZE(4), PTR(5)),                          \
    "opType:nn_name opName:nn_name tensors:any inputTensorNum:any outputTensorNum:any stream:any", \
    0)

#define DEFINE_CALL(name, arguments, parameters, context) \
  static int call_##name(const uintptr_t *a) { return name arguments; }
FUNCTIONS(DEFINE_CALL)

static const struct function {
  const char *name;
  int (*call)(const uintptr_t *a);
  const char *parameters;
  bool needs_context;
} functions[] = {
#define ROW(name, arguments, parameters, context) {#name, call_##name, parameters, context},
    FUNCTIONS(ROW)};
enum { FUNCTIONS_COUNT = sizeof functions / sizeof functions[0] };

/* --- a call ------------------------------------------------------------------------------------
 */

struct parameter {
  char name[32];
  const struct kind *kind;
};

static const struct kind *find_kind(const char *word) {
  for (int i = 0; i < KINDS; i++)
    if (strcmp(kinds[i].word, word) == 0) return &kinds[i];
  fail_msg("no kind '%s'", word);
  return NULL;
}

/* "stream:stream status:result" */
static int read_parameters(const char *text, struct parameter out[PARAMETERS_MAX]) {
  int count = 0, length;
  char word[32];
  for (; sscanf(text, " %31[^:]:%31s%n", out[count].name, word, &length) == 2; text += length)
    out[count++].kind = find_kind(word);
  return count;
}

static uintptr_t read_value(const struct value *v) {
  return v->is_thing ? things[v->number] : (uintptr_t)v->number;
}

static int calls, failed;
static unsigned char results[OUT_BYTES];

/* One wrong argument. */
struct slip {
  int parameter, code;
  const struct value *value;
};

static const char *judge(const struct function *f, const char *text, int status,
                         const struct parameter *p, const struct slip *a, const struct slip *b) {
  const char *words[2] = {p[a->parameter].name, b == NULL ? NULL : p[b->parameter].name};
  if (status != a->code && (b == NULL || status != b->code)) return "the code is wrong";
  for (int i = 0; i < OUT_BYTES; i++)
    if (results[i] != OUT_BYTE) return "a result was written";
  return judge_sentence(text, f->name, words, b == NULL ? 1 : 2);
}

static void check_call(const struct function *f, const struct parameter *p, int count,
                       const struct slip *a, const struct slip *b) {
  uintptr_t arguments[PARAMETERS_MAX] = {0};
  for (int i = 0; i < count; i++) arguments[i] = read_value(&p[i].kind->right);
  arguments[a->parameter] = read_value(a->value);
  if (b != NULL) arguments[b->parameter] = read_value(b->value);
  memset(results, OUT_BYTE, sizeof results);
  const struct handle_counts before = count_handles();
  const int status = f->call(arguments);
  const char *text = aclGetRecentErrMsg();
  const struct handle_counts after = count_handles();
  const char *wrong = judge(f, text, status, p, a, b);
  if (wrong == NULL && !same_handles(&before, &after)) wrong = "a handle is left or gone";
  calls++;
  if (wrong != NULL)
    complain(&failed, "%s: %s is %#llx%s%s\n  %s: %d, expected %d%s: %s", f->name,
             p[a->parameter].name, (unsigned long long)arguments[a->parameter],
             b == NULL ? "" : " and wrong ", b == NULL ? "" : p[b->parameter].name, wrong, status,
             a->code, b == NULL ? "" : " or the other's", text == NULL ? "(no sentence)" : text);
}

/* All slips of a function; how many. */
static int list_slips(const struct parameter *p, int count, struct slip *slips) {
  int found = 0;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < WRONGS_MAX && p[i].kind->wrongs[k].code != 0; k++)
      slips[found++] = (struct slip){i, p[i].kind->wrongs[k].code, &p[i].kind->wrongs[k].value};
  return found;
}

static void every_wrong_argument_is_refused(void **state) {
  (void)state;
  for (int i = 0; i < FUNCTIONS_COUNT; i++) {
    struct parameter p[PARAMETERS_MAX];
    struct slip slips[PARAMETERS_MAX * WRONGS_MAX];
    const int count = read_parameters(functions[i].parameters, p);
    const int found = list_slips(p, count, slips);
    assert_true(found > 0);
    for (int k = 0; k < found; k++) {
      check_call(&functions[i], p, count, &slips[k], NULL);
      for (int l = k + 1; l < found; l++)
        if (slips[l].parameter != slips[k].parameter)
          check_call(&functions[i], p, count, &slips[k], &slips[l]);
    }
  }
  print_message("%d wrong calls of %d functions\n", calls, FUNCTIONS_COUNT);
  assert_int_equal(failed, 0);
}

/* --- without a context -------------------------------------------------------------------------
 */

/* What a thread without a context gets for right arguments. */
struct lone_call {
  int status;
  char said[1024];
};

static void *call_without_context(void *state) {
  struct lone_call *found = state;
  for (int i = 0; i < FUNCTIONS_COUNT; i++) {
    struct parameter p[PARAMETERS_MAX];
    uintptr_t arguments[PARAMETERS_MAX] = {0};
    if (!functions[i].needs_context) continue;
    const int count = read_parameters(functions[i].parameters, p);
    for (int k = 0; k < count; k++) arguments[k] = read_value(&p[k].kind->right);
    found[i].status = functions[i].call(arguments);
    const char *text = aclGetRecentErrMsg();
    (void)snprintf(found[i].said, sizeof found[i].said, "%s", text == NULL ? "" : text);
  }
  return NULL;
}

static void a_thread_without_a_context_is_told_so(void **state) {
  (void)state;
  static struct lone_call found[FUNCTIONS_COUNT];
  pthread_t thread;
  failed = 0;
  memset(results, OUT_BYTE, sizeof results);
  assert_int_equal(pthread_create(&thread, NULL, call_without_context, found), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  for (int i = 0; i < FUNCTIONS_COUNT; i++)
    if (functions[i].needs_context &&
        (found[i].status != ACL_ERROR_RT_CONTEXT_NULL ||
         judge_sentence(found[i].said, functions[i].name, NULL, 0) != NULL))
      complain(&failed, "%s without a context: %d, expected 107002: %s", functions[i].name,
               found[i].status, found[i].said);
  for (int i = 0; i < OUT_BYTES; i++) assert_int_equal(results[i], OUT_BYTE);
  assert_int_equal(failed, 0);
}

/* --- the things --------------------------------------------------------------------------------
 */

static void do_nothing(void *data) { (void)data; }

static uintptr_t keep(enum thing thing, const void *handle) {
  assert_non_null(handle);
  return things[thing] = (uintptr_t)handle;
}

static const void *thing(enum thing thing) { return (const void *)things[thing]; }

static void make_contexts(void) {
  aclrtContext context;
  aclrtStream stream;
  OK_OR_SAY(aclrtGetCurrentContext(&context));
  keep(DEFAULT_CONTEXT, context);
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&stream));
  keep(DEFAULT_STREAM, stream);
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  keep(DEAD_CONTEXT, context);
  OK_OR_SAY(aclrtDestroyContext(context));
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  keep(LIVE_CONTEXT, context);
  OK_OR_SAY(aclrtCreateStream(&stream));
  keep(ALIEN_STREAM, stream);
  OK_OR_SAY(aclrtSetCurrentContext((aclrtContext)things[DEFAULT_CONTEXT]));
}

static void make_streams(void) {
  aclrtStream stream;
  aclrtEvent event;
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateStream(&stream));
  keep(DEAD_STREAM, stream);
  OK_OR_SAY(aclrtDestroyStream(stream));
  OK_OR_SAY(aclrtCreateStream(&stream));
  keep(LIVE_STREAM, stream);
  OK_OR_SAY(aclrtCreateEvent(&event));
  keep(DEAD_EVENT, event);
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclrtCreateEvent(&event));
  keep(LIVE_EVENT, event);
  OK_OR_SAY(aclrtRecordEvent(event, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  keep(DEAD_NOTIFY, notify);
  OK_OR_SAY(aclrtDestroyNotify(notify));
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  keep(LIVE_NOTIFY, notify);
  keep(DEAD_CONFIG, aclrtCreateStreamConfigHandle());
  keep(LIVE_CONFIG, aclrtCreateStreamConfigHandle());
  OK_OR_SAY(aclrtDestroyStreamConfigHandle((aclrtStreamConfigHandle *)things[DEAD_CONFIG]));
}

static aclTensor *make_tensor(void) {
  static const int64_t dims[] = {1, 2, 2, 2};
  return aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 4, NULL);
}

static aclOpExecutor *make_executor(void) {
  uint64_t size;
  aclOpExecutor *executor;
  aclTensor *tensor = (aclTensor *)things[LIVE_TENSOR];
  OK_OR_SAY(
      aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(tensor, tensor, tensor, &size, &executor));
  return executor;
}

static void make_values(void) {
  float one = 1;
  keep(DEAD_TENSOR, make_tensor());
  OK_OR_SAY(aclDestroyTensor(thing(DEAD_TENSOR)));
  keep(LIVE_TENSOR, make_tensor());
  keep(LIVE_SCALAR, aclCreateScalar(&one, ACL_FLOAT));
  keep(LIVE_INTS, aclCreateIntArray(NULL, 0));
  keep(LIVE_FLOATS, aclCreateFloatArray(NULL, 0));
  keep(LIVE_BOOLS, aclCreateBoolArray(NULL, 0));
  keep(LIVE_TENSORS, aclCreateTensorList((const aclTensor *[]){make_tensor()}, 1));
  keep(LIVE_SCALARS, aclCreateScalarList(NULL, 0));
  keep(DEAD_EXECUTOR, make_executor());
  keep(LIVE_EXECUTOR, make_executor());
  OK_OR_SAY(aclDestroyAclOpExecutor((aclOpExecutor *)things[DEAD_EXECUTOR]));
}

static int set_up(void **state) {
  static char host[BLOCK_BYTES] = "runtime";
  static int64_t no_handle;
  uint32_t count;
  if (set_up_device(state) != 0 || aclrtGetDeviceCount(&count) != ACL_SUCCESS) return 1;
  things[RESULT] = (uintptr_t)results;
  things[HOST] = (uintptr_t)host;
  things[INVENTED] = (uintptr_t)&no_handle;
  things[FUNCTION] = (uintptr_t)do_nothing;
  things[DEVICES] = count;
  things[BLOCK] = (uintptr_t)device_memory(BLOCK_BYTES);
  things[ODD_BLOCK] = things[BLOCK] + 1;
  make_contexts();
  make_streams();
  make_values();
  return 0;
}

static int tear_down(void **state) {
  OK_OR_SAY(aclDestroyAclOpExecutor((aclOpExecutor *)things[LIVE_EXECUTOR]));
  OK_OR_SAY(aclDestroyTensor(thing(LIVE_TENSOR)));
  OK_OR_SAY(aclDestroyScalar(thing(LIVE_SCALAR)));
  OK_OR_SAY(aclDestroyIntArray(thing(LIVE_INTS)));
  OK_OR_SAY(aclDestroyFloatArray(thing(LIVE_FLOATS)));
  OK_OR_SAY(aclDestroyBoolArray(thing(LIVE_BOOLS)));
  OK_OR_SAY(aclDestroyTensorList(thing(LIVE_TENSORS)));
  OK_OR_SAY(aclDestroyScalarList(thing(LIVE_SCALARS)));
  OK_OR_SAY(aclrtDestroyStreamConfigHandle((aclrtStreamConfigHandle *)things[LIVE_CONFIG]));
  OK_OR_SAY(aclrtDestroyNotify((aclrtNotify)things[LIVE_NOTIFY]));
  OK_OR_SAY(aclrtDestroyEvent((aclrtEvent)things[LIVE_EVENT]));
  OK_OR_SAY(aclrtDestroyStream((aclrtStream)things[LIVE_STREAM]));
  OK_OR_SAY(aclrtDestroyContext((aclrtContext)things[LIVE_CONTEXT])); /* with its stream */
  OK_OR_SAY(aclrtFree((void *)things[BLOCK]));
  return tear_down_device(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_wrong_argument_is_refused),
      cmocka_unit_test(a_thread_without_a_context_is_told_so),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
