/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and contexts. */
#include "stress.h"

static int32_t some_device(struct turn *t) { return (int32_t)pick(t, DEVICES); }

static void set_device(struct turn *t) { CALL(t, aclrtSetDevice, (some_device(t)), 0); }

static void reset_device(struct turn *t) {
  CALL(t, aclrtResetDevice, (some_device(t)), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

static void reset_device_force(struct turn *t) {
  CALL(t, aclrtResetDeviceForce, (some_device(t)), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

static void no_such_device(struct turn *t) {
  const int32_t id = chance(t, 2) ? -1 : ALL_DEVICES;
  if (CALL(t, aclrtSetDevice, (id), ACL_ERROR_RT_INVALID_DEVICEID) == 0)
    complain(t, "device %d could be set", (int)id);
}

static void synchronize_device(struct turn *t) {
  if (chance(t, 2))
    CALL(t, aclrtSynchronizeDevice, (), CONTEXT_CODES, OUTCOMES);
  else
    CALL(t, aclrtSynchronizeDeviceWithTimeout, ((int32_t)pick(t, 20)), CONTEXT_CODES, OUTCOMES,
         ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

static void ask_about_devices(struct turn *t) {
  int32_t id = 0, flag = 0;
  uint32_t count = 0;
  int64_t value = 0;
  aclrtRunMode mode;
  aclrtDeviceStatus status;
  aclrtUtilizationInfo use;
  aclrtErrorInfo error;
  CALL(t, aclrtGetDevice, (&id), CONTEXT_CODES);
  if (CALL(t, aclrtGetDeviceCount, (&count), 0) == 0 && count != ALL_DEVICES)
    complain(t, "there are %u devices", count);
  CALL(t, aclrtGetRunMode, (&mode), 0);
  CALL(t, aclrtQueryDeviceStatus, (some_device(t), &status), 0);
  CALL(t, aclrtGetDeviceUtilizationRate, (some_device(t), &use), 0);
  CALL(t, aclrtGetErrorVerbose, (some_device(t), &error), 0);
  CALL(t, aclrtGetDeviceInfo, (0, ACL_DEV_ATTR_AICORE_CORE_NUM, &value), 0);
  CALL(t, aclrtGetDeviceInfo, (0, ACL_DEV_ATTR_WARP_SIZE, &value),
       ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, aclGetDeviceCapability, (0, ACL_DEVICE_INFO_L2_SIZE, &value), 0);
  CALL(t, aclrtGetDeviceCapability, (0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &flag), 0);
  CALL(t, aclrtCheckArchCompatibility, ("Ascend910B1", &flag), 0);
  CALL(t, aclrtSetTsDevice, (ACL_TS_ID_AICORE), 0);
}

static void reach_peers(struct turn *t) {
  int32_t can = 0;
  const int32_t peer = some_device(t);
  CALL(t, aclrtDeviceCanAccessPeer, (&can, 0, peer), ACL_ERROR_INVALID_PARAM);
  CALL(t, aclrtDeviceEnablePeerAccess, (peer, 0), CONTEXT_CODES, ACL_ERROR_INVALID_PARAM);
  CALL(t, aclrtDeviceDisablePeerAccess, (peer), CONTEXT_CODES, ACL_ERROR_INVALID_PARAM,
       ACL_ERROR_RT_PARAM_INVALID); /* another thread was faster */
}

static void limit_devices(struct turn *t) {
  const int32_t id = some_device(t);
  uint32_t value = 0;
  CALL(t, aclrtGetDeviceResLimit, (id, ACL_RT_DEV_RES_CUBE_CORE, &value), 0);
  CALL(t, aclrtSetDeviceResLimit, (id, ACL_RT_DEV_RES_VECTOR_CORE, 1), 0);
  CALL(t, aclrtResetDeviceResLimit, (id), 0);
  CALL(t, aclrtGetResInCurrentThread, (ACL_RT_DEV_RES_CUBE_CORE, &value), CONTEXT_CODES);
}

static void set_saturation(struct turn *t) {
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  CALL(t, aclrtSetDeviceSatMode, (ACL_RT_OVERFLOW_MODE_INFNAN), CONTEXT_CODES);
  CALL(t, aclrtGetDeviceSatMode, (&mode), CONTEXT_CODES);
}

static void create_context(struct turn *t) {
  aclrtContext context = NULL;
  if (CALL(t, aclrtCreateContext, (&context, some_device(t)), 0) == 0)
    shelf_destroy(t, CONTEXTS, shelf_put(t, CONTEXTS, context));
}

static void destroy_context(struct turn *t) { shelf_destroy(t, CONTEXTS, shelf_any(t, CONTEXTS)); }

static void set_context(struct turn *t) {
  CALL(t, aclrtSetCurrentContext, (shelf_any(t, CONTEXTS)), ACL_ERROR_RT_PARAM_INVALID,
       ACL_ERROR_INVALID_PARAM);
}

static void ask_about_context(struct turn *t) {
  aclrtContext context = NULL;
  aclrtStream stream = NULL;
  int32_t active = 0;
  int64_t value = 0;
  CALL(t, aclrtGetCurrentContext, (&context), CONTEXT_CODES);
  CALL(t, aclrtGetPrimaryCtxState, (some_device(t), NULL, &active), 0);
  if (CALL(t, aclrtCtxGetCurrentDefaultStream, (&stream), CONTEXT_CODES) == 0 && chance(t, 4))
    shelf_destroy(t, STREAMS, shelf_put(t, STREAMS, stream)); /* others may try to destroy it */
  CALL(t, aclrtCtxSetSysParamOpt, (ACL_OPT_DETERMINISTIC, (int64_t)pick(t, 4)), CONTEXT_CODES);
  CALL(t, aclrtCtxGetSysParamOpt, (ACL_OPT_DETERMINISTIC, &value), CONTEXT_CODES,
       ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
}

const struct row device_rows[] = {
    ROW(set_device, 40, ANY_WEATHER),         ROW(reset_device, 60, ENDS),
    ROW(reset_device_force, 6, ENDS),         ROW(no_such_device, 4, ANY_WEATHER),
    ROW(synchronize_device, 20, ANY_WEATHER), ROW(ask_about_devices, 8, ANY_WEATHER),
    ROW(reach_peers, 8, ANY_WEATHER),         ROW(limit_devices, 8, ANY_WEATHER),
    ROW(set_saturation, 4, ANY_WEATHER),      ROW(create_context, 15, ANY_WEATHER),
    ROW(destroy_context, 10, ENDS),           ROW(set_context, 60, ANY_WEATHER),
    ROW(ask_about_context, 20, ANY_WEATHER),  {NULL, 0, 0, NULL},
};
