/* SPDX-License-Identifier: Apache-2.0 */
/* What a device can be asked about itself, and the settings it keeps. */
#include <string.h>
#include <unistd.h>

#include "core/soc.h"
#include "runtime/context.h"
#include "runtime/stream.h"

/* Per device; atomics because any thread may set them. */
static struct {
  atomic_uint limit[PG_RES_TYPES]; /* 0: all cores */
  atomic_int sat_mode;             /* minus ACL_RT_OVERFLOW_MODE_INFNAN, so that 0 is the default */
  _Atomic uint64_t peers;          /* bit per device whose memory it may reach */
} settings[PG_DEVICES_MAX];

/* The limits of the stream this thread has chosen; 0: none chosen. */
static _Thread_local uint32_t thread_limit[PG_RES_TYPES];

aclError aclrtGetRunMode(aclrtRunMode *runMode) {
  PG_CHECK_PTR(runMode, ACL_ERROR_INVALID_PARAM);
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgid(int32_t *pid) {
  PG_CHECK_PTR(pid, ACL_ERROR_INVALID_PARAM);
  *pid = getpid();
  return ACL_SUCCESS;
}

aclError aclrtSetTsDevice(aclrtTsId tsId) {
  PG_CHECK(tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR, ACL_ERROR_INVALID_PARAM,
           "tsId is %d, allowed is 0 or 1", (int)tsId);
  return ACL_SUCCESS;
}

static int cores(const struct pg_device *device) {
  return device->backend->core_count(device->ordinal);
}

static int64_t l2_bytes(const struct pg_device *device) {
  return device->backend->cache_bytes(device->ordinal);
}

static int64_t memory_bytes(const struct pg_device *device) {
  size_t free_bytes, total_bytes;
  device->backend->memory_info(device->ordinal, &free_bytes, &total_bytes);
  return (int64_t)total_bytes;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
  struct pg_device device;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  switch (attr) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = cores(&device);
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = memory_bytes(&device);
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = l2_bytes(&device);
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_PHY_CHIP_ID:
      *value = (int64_t)deviceId;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_IS_VIRTUAL:
      *value = 0;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_NPU_ARCH:
      *value = pg_soc()->npu_arch;
      return ACL_SUCCESS;
    default:
      return pg_fail(__func__, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                     "attr is %d, which the devices here do not have", (int)attr);
  }
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
  struct pg_device device;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = cores(&device);
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = l2_bytes(&device);
      return ACL_SUCCESS;
    default:
      return pg_fail(__func__, ACL_ERROR_INVALID_PARAM, "deviceInfo is %d, allowed is 0 to 2",
                     (int)deviceInfo);
  }
}

/* Both features are about the NPU's task scheduler. */
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t *value) {
  struct pg_device device;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  PG_CHECK(devFeatureType == ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV ||
               devFeatureType == ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
           ACL_ERROR_INVALID_PARAM, "devFeatureType is %d, allowed is 1 or 21",
           (int)devFeatureType);
  *value = ACL_DEV_FEATURE_NOT_SUPPORT;
  return ACL_SUCCESS;
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus) {
  struct pg_device device;
  PG_CHECK_PTR(deviceStatus, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo) {
  struct pg_device device;
  size_t free_bytes, total_bytes;
  PG_CHECK_PTR(utilizationInfo, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  device.backend->memory_info(device.ordinal, &free_bytes, &total_bytes);
  utilizationInfo->cubeUtilization = -1; /* -1: not measured */
  utilizationInfo->vectorUtilization = -1;
  utilizationInfo->aicpuUtilization = -1;
  utilizationInfo->memoryUtilization =
      total_bytes == 0 ? -1 : (int32_t)((total_bytes - free_bytes) * 100 / total_bytes);
  return ACL_SUCCESS;
}

aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible) {
  PG_CHECK_PTR(socVersion, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(canCompatible, ACL_ERROR_INVALID_PARAM);
  const struct pg_soc *row = pg_soc_find(socVersion);
  *canCompatible = row != NULL && row->npu_arch == pg_soc()->npu_arch;
  return ACL_SUCCESS;
}

static aclError find_pair(const char *api, int32_t device, int32_t peer, struct pg_device *a,
                          struct pg_device *b) {
  PG_TRY(pg_device_find(api, device, a));
  PG_TRY(pg_device_find_named(api, "peerDeviceId", peer, b));
  if (device == peer)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                   "peerDeviceId is %d, the device itself, another one is required", (int)peer);
  return ACL_SUCCESS;
}

/* A device given twice is its own peer, whom it always reaches. */
static bool can_reach(const struct pg_device *a, const struct pg_device *b) {
  if (a->backend != b->backend) return false;
  return a->ordinal == b->ordinal || a->backend->can_reach(a->ordinal, b->ordinal);
}

static aclError reach(const char *api, const struct pg_device *a, const struct pg_device *b,
                      bool enable) {
  if (!can_reach(a, b))
    return pg_fail(api, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                   "the device cannot reach that peer's memory");
  if (a->ordinal == b->ordinal) return ACL_SUCCESS;
  const aclError status = a->backend->reach(a->ordinal, b->ordinal, enable);
  return status == ACL_SUCCESS ? status : pg_fail(api, status, "the device refused the peer");
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  struct pg_device a, b;
  PG_CHECK_PTR(canAccessPeer, ACL_ERROR_INVALID_PARAM);
  PG_TRY(find_pair(__func__, deviceId, peerDeviceId, &a, &b));
  *canAccessPeer = can_reach(&a, &b);
  return ACL_SUCCESS;
}

static aclError set_peer(const char *api, int32_t peer, bool enable) {
  struct pg_context *context;
  struct pg_device a, b;
  PG_TRY(pg_context_current(api, &context));
  const int device = context->device_id;
  pg_release(&context->object);
  PG_TRY(find_pair(api, device, peer, &a, &b));
  const uint64_t bit = UINT64_C(1) << peer;
  if (enable) {
    PG_TRY(reach(api, &a, &b, true));
    atomic_fetch_or(&settings[device].peers, bit);
    return ACL_SUCCESS;
  }
  if ((atomic_fetch_and(&settings[device].peers, ~bit) & bit) == 0)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID,
                   "peer access from device %d to %d is not enabled", device, (int)peer);
  return reach(api, &a, &b, false);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  PG_CHECK(flags == 0, ACL_ERROR_RT_PARAM_INVALID, "flags is %u, it is reserved and must be 0",
           flags);
  return set_peer(__func__, peerDeviceId, true);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return set_peer(__func__, peerDeviceId, false);
}

/* Results are IEEE in either mode; the choice is kept for its getter. */
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  struct pg_context *context;
  PG_CHECK(mode == ACL_RT_OVERFLOW_MODE_SATURATION || mode == ACL_RT_OVERFLOW_MODE_INFNAN,
           ACL_ERROR_RT_PARAM_INVALID, "mode is %d, allowed is 0 or 1", (int)mode);
  PG_TRY(pg_context_current(__func__, &context));
  atomic_store(&settings[context->device_id].sat_mode, (int)mode - ACL_RT_OVERFLOW_MODE_INFNAN);
  pg_release(&context->object);
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
  struct pg_context *context;
  PG_CHECK_PTR(mode, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_context_current(__func__, &context));
  *mode = (aclrtFloatOverflowMode)(atomic_load(&settings[context->device_id].sat_mode) +
                                   ACL_RT_OVERFLOW_MODE_INFNAN);
  pg_release(&context->object);
  return ACL_SUCCESS;
}

/* Kernels here cannot be stopped, and nothing reads the limit back. */
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  (void)timeout;
  return ACL_SUCCESS;
}

/* Core limits: kept and reported; POOLGRAD_THREADS is what bounds the threads of a kernel. */
static aclError check_type(const char *api, aclrtDevResLimitType type) {
  if (type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_INVALID_PARAM, "type is %d, allowed is 0 or 1", (int)type);
}

static aclError check_limit(const char *api, const struct pg_device *device, uint32_t value) {
  if (value >= 1 && value <= (uint32_t)cores(device)) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "value is %u, allowed is 1 to %d", value,
                 cores(device));
}

static uint32_t device_limit(const struct pg_device *device, int id, aclrtDevResLimitType type) {
  const uint32_t limit = atomic_load(&settings[id].limit[type]);
  return limit == 0 ? (uint32_t)cores(device) : limit;
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value) {
  struct pg_device device;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_type(__func__, type));
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  *value = device_limit(&device, deviceId, type);
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  struct pg_device device;
  PG_TRY(check_type(__func__, type));
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  PG_TRY(check_limit(__func__, &device, value));
  atomic_store(&settings[deviceId].limit[type], value);
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  struct pg_device device;
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  for (int t = 0; t < PG_RES_TYPES; t++) atomic_store(&settings[deviceId].limit[t], 0);
  return ACL_SUCCESS;
}

static uint32_t stream_limit(struct pg_stream *stream, aclrtDevResLimitType type) {
  const uint32_t limit = atomic_load(&stream->limit[type]);
  if (limit != 0) return limit;
  return device_limit(&stream->context->device, stream->context->device_id, type);
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value) {
  struct pg_stream *found;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_type(__func__, type));
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  *value = stream_limit(found, type);
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  struct pg_stream *found;
  PG_TRY(check_type(__func__, type));
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status = check_limit(__func__, &found->context->device, value);
  if (status == ACL_SUCCESS) atomic_store(&found->limit[type], value);
  pg_stream_release(found);
  return status;
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  for (int t = 0; t < PG_RES_TYPES; t++) atomic_store(&found->limit[t], 0);
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  for (int t = 0; t < PG_RES_TYPES; t++)
    thread_limit[t] = stream_limit(found, (aclrtDevResLimitType)t);
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  pg_stream_release(found);
  memset(thread_limit, 0, sizeof thread_limit);
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) {
  struct pg_context *context;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_type(__func__, type));
  PG_TRY(pg_context_current(__func__, &context));
  *value = thread_limit[type] != 0 ? thread_limit[type]
                                   : device_limit(&context->device, context->device_id, type);
  pg_release(&context->object);
  return ACL_SUCCESS;
}
