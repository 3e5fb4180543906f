/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of CANN that programs are linked with and that nothing here can do.  Each row of the
 * table at the end is one of them: what it returns, its name, its parameters and its group, which
 * says how it is refused.  Headers declare them where CANN's do; programs find those that no header
 * here declares by their names alone. */
#include "acl/acl_mdl.h"
#include "core/status.h"
#include "hccl/hccl.h"

struct group {
  int code;
  int like; /* the code whose title the sentence gets */
  const char *sentence;
};

static const struct group dump = {
    ACL_ERROR_API_NOT_SUPPORT, ACL_ERROR_API_NOT_SUPPORT,
    "tensors cannot be dumped to files here; copy what is wanted to the host with aclrtMemcpy"};

static const struct group kernel = {
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    "kernels that are compiled for an Ascend processor cannot run here; call an operator of "
    "aclnnop/ instead"};

static const struct group chip_link = {
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    "the devices here have no link between chips that could be controlled; copy between devices "
    "with aclrtMemcpy"};

static const struct group share = {
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    "device memory cannot be shared with other processes here; copy it through memory of the host "
    "that both processes see"};

static const struct group collective = {
    HCCL_E_NOT_SUPPORT, ACL_ERROR_API_NOT_SUPPORT,
    "there is no collective communication here; copy to the host and communicate there, as the "
    "backend gloo of PyTorch does"};

static const struct group profile = {
    -1, ACL_ERROR_API_NOT_SUPPORT,
    "nothing is recorded for Ascend's profiler here; use a profiler of the host"};

static int refuse(const char *name, const struct group *group) {
  return pg_fail_titled(group->like, name, group->code, "%s", group->sentence);
}

#define PG_UNSUPPORTED(result, name, parameters, group) \
  ACL_FUNC_VISIBILITY result name parameters;           \
  result name parameters { return (result)refuse(#name, &(group)); }

/* No parameter is read, but their number and types are CANN's. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

PG_UNSUPPORTED(aclError, aclmdlInitDump, (void), dump)
PG_UNSUPPORTED(aclError, aclmdlSetDump, (const char *dumpCfgPath), dump)
PG_UNSUPPORTED(aclError, aclmdlFinalizeDump, (void), dump)

PG_UNSUPPORTED(aclError, aclrtBinaryLoadFromData,
               (const void *data, size_t length, const aclrtBinaryLoadOptions *options,
                aclrtBinHandle *binHandle),
               kernel)
PG_UNSUPPORTED(aclError, aclrtBinaryGetFunction,
               (const aclrtBinHandle binHandle, const char *kernelName,
                aclrtFuncHandle *funcHandle),
               kernel)
PG_UNSUPPORTED(aclError, aclrtGetFunctionAddr,
               (aclrtFuncHandle funcHandle, void **aicAddr, void **aivAddr), kernel)
PG_UNSUPPORTED(int, rtDevBinaryRegister, (const void *bin, void **handle), kernel)
PG_UNSUPPORTED(int, rtFunctionRegister,
               (void *binHandle, const void *stubFunc, const char *stubName,
                const void *kernelInfoExt, uint32_t funcMode),
               kernel)
PG_UNSUPPORTED(int, rtKernelLaunch,
               (const void *stubFunc, uint32_t blockDim, void *args, uint32_t argsSize,
                void *smDesc, void *stream),
               kernel)
PG_UNSUPPORTED(int, rtGetC2cCtrlAddr, (uint64_t * address, uint32_t *length), chip_link)

PG_UNSUPPORTED(aclError, aclrtMemExportToShareableHandle,
               (aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
                uint64_t *shareableHandle),
               share)
PG_UNSUPPORTED(aclError, aclrtMemImportFromShareableHandle,
               (uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle), share)
PG_UNSUPPORTED(aclError, aclrtMemSetPidToShareableHandle,
               (uint64_t shareableHandle, int32_t *pid, size_t pidNum), share)

PG_UNSUPPORTED(HcclResult, HcclGetRootInfo, (HcclRootInfo * rootInfo), collective)
PG_UNSUPPORTED(HcclResult, HcclCommInitRootInfo,
               (uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm),
               collective)
PG_UNSUPPORTED(HcclResult, HcclCommInitAll, (uint32_t ndev, int32_t *devices, HcclComm *comms),
               collective)
PG_UNSUPPORTED(HcclResult, HcclCommDestroy, (HcclComm comm), collective)
PG_UNSUPPORTED(HcclResult, HcclAllReduce,
               (void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
                HcclReduceOp op, HcclComm comm, aclrtStream stream),
               collective)
PG_UNSUPPORTED(HcclResult, HcclBroadcast,
               (void *buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                aclrtStream stream),
               collective)
PG_UNSUPPORTED(HcclResult, HcclReduceScatter,
               (void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType,
                HcclReduceOp op, HcclComm comm, aclrtStream stream),
               collective)
PG_UNSUPPORTED(HcclResult, HcclAllGather,
               (void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType,
                HcclComm comm, aclrtStream stream),
               collective)
PG_UNSUPPORTED(HcclResult, HcclSend,
               (void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                HcclComm comm, aclrtStream stream),
               collective)
PG_UNSUPPORTED(HcclResult, HcclRecv,
               (void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                HcclComm comm, aclrtStream stream),
               collective)

PG_UNSUPPORTED(int32_t, MsprofReportApi, (uint32_t nonPersistantFlag, const void *api), profile)
PG_UNSUPPORTED(int32_t, MsprofReportCompactInfo,
               (uint32_t nonPersistantFlag, void *data, uint32_t length), profile)
PG_UNSUPPORTED(int32_t, MsprofReportAdditionalInfo,
               (uint32_t nonPersistantFlag, void *data, uint32_t length), profile)
