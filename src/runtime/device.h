/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: what POOLGRAD_DEVICES lists and ASCEND_RT_VISIBLE_DEVICES leaves of it. */
#ifndef PG_DEVICE_H_
#define PG_DEVICE_H_

#include "acl/acl_rt.h"
#include "runtime/backend.h"

enum { PG_DEVICES_MAX = 64, PG_RES_TYPES = 2 };

struct pg_device {
  const struct pg_backend *backend;
  int ordinal; /* the backend's own number for it */
};

/* Reads the environment (devices, threads, product, log) anew; aclInit and aclnnInit call it.
 * Devices that are in use stay as they are. */
aclError pg_configure(const char *api);

/* The device with this id, the argument deviceId of api: ACL_ERROR_RT_INVALID_DEVICEID and a
 * sentence when there is none. */
aclError pg_device_find(const char *api, int64_t id, struct pg_device *out);

/* The same for an argument with another name. */
aclError pg_device_find_named(const char *api, const char *name, int64_t id, struct pg_device *out);

/* Can there be streams of the i-th backend?  No if the list of devices is known and has none of its
 * devices. */
bool pg_backend_has_devices(int i);

/* Waits for all streams of the thread's current device; the first failure is this call's. */
aclError pg_device_synchronize(const char *api, int64_t timeout_ns);

/* Releases every device regardless of its count, waiting for work but not for waits that nobody
 * ends; for aclFinalize. */
void pg_devices_release_all(const char *api);

/* init.c: has aclFinalize run since the last aclInit? */
bool pg_is_finalized(void);

#endif
