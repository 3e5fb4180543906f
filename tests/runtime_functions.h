/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the runtime and of the aclnn base that return a code, with what each takes. */
#ifndef PG_TESTS_RUNTIME_FUNCTIONS_H_
#define PG_TESTS_RUNTIME_FUNCTIONS_H_

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

/* An argument of a call, as the type the function wants. */
#define P(type, i) ((type)a[i])
#define I32(i) ((int32_t)a[i])
#define U32(i) ((uint32_t)a[i])
#define ENUM(type, i) ((type)(int32_t)a[i])
#define SIZE(i) ((size_t)a[i])
#define PTR(i) ((void *)a[i])

/* F(name, arguments, "word:kind ...", whether it needs a context).  The word is what the sentence
 * calls the argument: its name in the header, as headers/check_argument_names.py makes sure. */
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
  F(aclrtGetErrorVerbose, (I32(0), PTR(1)), "deviceId:device errorInfo:result", 0)                 \
  F(aclrtSetDevice, (I32(0)), "deviceId:device", 0)                                                \
  F(aclrtResetDevice, (I32(0)), "deviceId:device", 0)                                              \
  F(aclrtResetDeviceForce, (I32(0)), "deviceId:device", 0)                                         \
  F(aclrtGetDevice, (PTR(0)), "deviceId:result", 1)                                                \
  F(aclrtGetDeviceCount, (PTR(0)), "count:result", 0)                                              \
  F(aclrtGetRunMode, (PTR(0)), "runMode:result", 0)                                                \
  F(aclrtSynchronizeDeviceWithTimeout, (I32(0)), "timeout:ms_or_0", 1)                             \
  F(aclrtSetTsDevice, (ENUM(aclrtTsId, 0)), "tsId:to_1", 0)                                        \
  F(aclrtGetDeviceUtilizationRate, (I32(0), PTR(1)), "deviceId:device utilizationInfo:result", 0)  \
  F(aclrtQueryDeviceStatus, (I32(0), PTR(1)), "deviceId:device deviceStatus:result", 0)            \
  F(aclrtGetDeviceInfo, (U32(0), ENUM(aclrtDevAttr, 1), PTR(2)),                                   \
    "deviceId:device attr:attribute value:result", 0)                                              \
  F(aclrtGetDeviceCapability, (I32(0), ENUM(aclrtDevFeatureType, 1), PTR(2)),                      \
    "deviceId:device devFeatureType:feature value:result", 0)                                      \
  F(aclrtDeviceCanAccessPeer, (PTR(0), I32(1), I32(2)),                                            \
    "canAccessPeer:result deviceId:device peerDeviceId:any", 0)                                    \
  F(aclrtDeviceEnablePeerAccess, (I32(0), U32(1)), "peerDeviceId:device flags:zero", 0)            \
  F(aclrtDeviceDisablePeerAccess, (I32(0)), "peerDeviceId:device", 0)                              \
  F(aclrtGetDeviceResLimit, (I32(0), ENUM(aclrtDevResLimitType, 1), PTR(2)),                       \
    "deviceId:device type:to_1 value:result", 0)                                                   \
  F(aclrtSetDeviceResLimit, (I32(0), ENUM(aclrtDevResLimitType, 1), U32(2)),                       \
    "deviceId:device type:to_1 value:count", 0)                                                    \
  F(aclrtResetDeviceResLimit, (I32(0)), "deviceId:device", 0)                                      \
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
  F(aclrtCreateContext, (PTR(0), I32(1)), "context:result deviceId:device", 0)                     \
  F(aclrtDestroyContext, (PTR(0)), "context:own_context", 0)                                       \
  F(aclrtSetCurrentContext, (PTR(0)), "context:context", 0)                                        \
  F(aclrtGetCurrentContext, (PTR(0)), "context:result", 1)                                         \
  F(aclrtCtxGetCurrentDefaultStream, (PTR(0)), "stream:result", 1)                                 \
  F(aclrtGetPrimaryCtxState, (I32(0), PTR(1), PTR(2)), "deviceId:device flags:any active:result",  \
    0)                                                                                             \
  F(aclrtCtxGetSysParamOpt, (ENUM(aclSysParamOpt, 0), PTR(1)), "opt:to_2 value:result", 1)         \
  F(aclrtCtxSetSysParamOpt, (ENUM(aclSysParamOpt, 0), (int64_t)a[1]), "opt:any value:level", 1)    \
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
  F(aclrtSetStreamFailureMode, (PTR(0), (uint64_t)a[1]), "stream:stream mode:to_1_of_numbers", 1)  \
  F(aclrtSetStreamAttribute, (PTR(0), ENUM(aclrtStreamAttr, 1), PTR(2)),                           \
    "stream:stream stmAttrType:stream_attribute value:pointer", 1)                                 \
  F(aclrtGetStreamAttribute, (PTR(0), ENUM(aclrtStreamAttr, 1), PTR(2)),                           \
    "stream:stream stmAttrType:stream_attribute value:result", 1)                                  \
  F(aclrtSetStreamOverflowSwitch, (PTR(0), U32(1)), "stream:stream flag:to_1_of_numbers", 1)       \
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
    "stream:stream event:event timeout:any flag:record_flag", 1)                                   \
  F(aclrtEventElapsedTime, (PTR(0), PTR(1), PTR(2)), "ms:result startEvent:event endEvent:event",  \
    0)                                                                                             \
  F(aclrtEventGetTimestamp, (PTR(0), PTR(1)), "event:event timestamp:result", 0)                   \
  F(aclrtGetEventId, (PTR(0), PTR(1)), "event:event eventId:result", 0)                            \
  F(aclrtGetEventAvailNum, (PTR(0)), "eventCount:result", 0)                                       \
  F(aclrtCreateNotify, (PTR(0), (uint64_t)a[1]), "notify:result flag:to_1_of_numbers", 1)          \
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
    "pHost:unregistered pDevice:result flag:reserved", 0)                                          \
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
  F(aclrtMemcpyBatch, (PTR(0), PTR(1), PTR(2), PTR(3), SIZE(4), PTR(5), PTR(6), SIZE(7), PTR(8)),  \
    "dsts:batch_to destMaxs:batch_room srcs:batch_from sizes:batch_size numBatches:rows "          \
    "attrs:batch_places attrsIndexes:batch_first numAttrs:rows failIndex:fail_index",              \
    1)                                                                                             \
  F(aclrtMemcpyBatchAsync,                                                                         \
    (PTR(0), PTR(1), PTR(2), PTR(3), SIZE(4), PTR(5), PTR(6), SIZE(7), PTR(8), PTR(9)),            \
    "dsts:batch_to destMaxs:batch_room srcs:batch_from sizes:batch_size numBatches:rows "          \
    "attrs:batch_places attrsIndexes:batch_first numAttrs:rows failIndex:fail_index "              \
    "stream:stream",                                                                               \
    1)                                                                                             \
  F(aclDestroyDataBuffer, (PTR(0)), "dataBuffer:buffer", 0)                                        \
  F(aclUpdateDataBuffer, (PTR(0), PTR(1), SIZE(2)), "dataBuffer:buffer data:any size:any", 0)      \
  F(aclrtSynchronizeDevice, (), "", 1)                                                             \
  F(aclrtMemset, (PTR(0), SIZE(1), I32(2), SIZE(3)),                                               \
    "devPtr:block maxCount:count value:any count:bytes", 1)                                        \
  F(aclrtMemsetAsync, (PTR(0), SIZE(1), I32(2), SIZE(3), PTR(4)),                                  \
    "devPtr:block maxCount:count value:any count:bytes stream:stream", 1)                          \
  F(aclrtMemsetD32, (PTR(0), SIZE(1), U32(2), SIZE(3)),                                            \
    "devPtr:word_block memSize:count value:any numElements:words", 1)                              \
  F(aclrtMemsetD32Async, (PTR(0), SIZE(1), U32(2), SIZE(3), PTR(4)),                               \
    "devPtr:word_block memSize:words_room value:any numElements:sixteen stream:stream", 1)         \
  F(aclrtGetMemInfo, (ENUM(aclrtMemAttr, 0), PTR(1), PTR(2)), "attr:any free:result total:result", \
    1)                                                                                             \
  F(aclrtGetMemUsageInfo, (I32(0), PTR(1), SIZE(2), PTR(3)),                                       \
    "deviceId:device memUsageInfo:result inputNum:rows outputNum:result", 0)                       \
  F(aclrtValueWrite, (PTR(0), (uint64_t)a[1], U32(2), PTR(3)),                                     \
    "devAddr:value_block value:any flag:zero stream:stream", 1)                                    \
  F(aclrtValueWait, (PTR(0), (uint64_t)a[1], U32(2), PTR(3)),                                      \
    "devAddr:value_block value:any flag:to_3_of_numbers stream:stream", 1)                         \
  F(aclGetCannAttributeList, (PTR(0), PTR(1)), "cannAttrList:result num:result", 0)                \
  F(aclGetCannAttribute, (ENUM(aclCannAttr, 0), PTR(1)), "cannAttr:to_2 value:result", 0)          \
  F(aclGetDeviceCapability, (U32(0), ENUM(aclDeviceInfo, 1), PTR(2)),                              \
    "deviceId:device deviceInfo:to_2 value:result", 0)                                             \
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
  F(aclGetTensorListSize, (PTR(0), PTR(1)), "tensorList:tensors size:nn_result", 0)                \
  F(aclGetScalarListSize, (PTR(0), PTR(1)), "scalarList:scalars size:nn_result", 0)                \
  F(aclDestroyIntArray, (PTR(0)), "array:own_array", 0)                                            \
  F(aclDestroyFloatArray, (PTR(0)), "array:own_array", 0)                                          \
  F(aclDestroyBoolArray, (PTR(0)), "array:own_array", 0)                                           \
  F(aclDestroyScalar, (PTR(0)), "scalar:own_array", 0)                                             \
  F(aclDestroyTensorList, (PTR(0)), "array:own_array", 0)                                          \
  F(aclDestroyScalarList, (PTR(0)), "array:own_array", 0)                                          \
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

#endif
