/* SPDX-License-Identifier: Apache-2.0 */
/* Versions: of the interface, of the packages laid out under ASCEND_HOME_PATH, of ourselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_rt.h"
#include "core/environment.h"
#include "core/regular_file.h"
#include "core/status.h"
#include "core/thread.h"
#include "poolgrad.h"

#ifndef POOLGRAD_VERSION
#error "the build defines POOLGRAD_VERSION"
#endif

const char *poolgrad_version(void) { return POOLGRAD_VERSION; }

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion) {
  PG_CHECK_PTR(majorVersion, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(minorVersion, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(patchVersion, ACL_ERROR_INVALID_PARAM);
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}

/* share/info/<package>/version.info has a line Version=...; '-' and '_' in names are one. */
static aclError open_info(const char *api, const char *home, const char *package, FILE **out) {
  static const char layout[] = "%s/share/info/%s/version.info";
  const size_t size = sizeof layout + strlen(home) + strlen(package);
  char *path = malloc(size);
  FILE *file = NULL;
  bool other;
  PG_CHECK_AS(api, path != NULL, ACL_ERROR_BAD_ALLOC, "no memory for the path of version.info");
  for (int spelling = 0; file == NULL && spelling < 3; spelling++) {
    snprintf(path, size, layout, home, package);
    for (char *p = path + strlen(home) + strlen("/share/info/"); spelling > 0 && *p != '/'; p++)
      if (*p == '-' || *p == '_') *p = spelling == 1 ? '_' : '-';
    file = pg_open_regular(path, &other);
  }
  free(path);
  *out = file;
  return ACL_SUCCESS;
}

static aclError find_version(const char *api, const char *package, char out[static 128]) {
  const char *home = pg_getenv("ASCEND_HOME_PATH");
  if (home == NULL || home[0] == '\0')
    return pg_fail(api, ACL_ERROR_INVALID_FILE, "ASCEND_HOME_PATH is not set, set_env.sh sets it");
  FILE *file = NULL;
  if (strchr(package, '/') == NULL) PG_TRY(open_info(api, home, package, &file));
  if (file == NULL)
    return pg_fail(api, ACL_ERROR_INVALID_FILE, "%s/share/info/%s/version.info cannot be opened",
                   home, package);
  char line[256];
  bool found = false;
  while (!found && fgets(line, sizeof line, file) != NULL)
    found = sscanf(line, "Version=%127[^\r\n]", out) == 1;
  fclose(file);
  if (!found)
    return pg_fail(api, ACL_ERROR_INVALID_FILE,
                   "version.info of package %s has no line Version=", package);
  return ACL_SUCCESS;
}

/* A thread that is cancelled while it reads would leave the file open. */
static aclError package_version(const char *api, const char *package, char out[static 128]) {
  const int cancel = pg_cancel_off();
  const aclError status = find_version(api, package, out);
  pg_cancel_restore(cancel);
  return status;
}

/* major.minor.patch, then perhaps .alpha1, .beta2 or .rc3. */
struct parts {
  int major, minor, patch, stage; /* stage: 0, or -300, -200, -100 plus its number */
};

static struct parts split(const char *version) {
  static const struct {
    const char *word;
    int base;
  } stages[] = {{"alpha", -300}, {"beta", -200}, {"rc", -100}};
  struct parts p = {0, 0, 0, 0};
  (void)sscanf(version, "%9d.%9d.%9d", &p.major, &p.minor, &p.patch);
  for (int i = 0; i < 3; i++) {
    const char *found = strcasestr(version, stages[i].word);
    if (found == NULL) continue;
    found += strlen(stages[i].word);
    int number = 0;
    (void)sscanf(*found == '.' ? found + 1 : found, "%5d", &number);
    p.stage = stages[i].base + number;
  }
  return p;
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr) {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  PG_CHECK_PTR(pkgName, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(versionStr, ACL_ERROR_INVALID_PARAM);
  PG_TRY(package_version(__func__, pkgName, version));
  memcpy(versionStr, version, strlen(version) + 1);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum) {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  PG_CHECK_PTR(pkgName, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(versionNum, ACL_ERROR_INVALID_PARAM);
  PG_TRY(package_version(__func__, pkgName, version));
  const struct parts p = split(version);
  const int64_t number =
      p.major * INT64_C(10000000) + p.minor * INT64_C(100000) + p.patch * INT64_C(1000) + p.stage;
  PG_CHECK(number >= 0 && number <= INT32_MAX, ACL_ERROR_INVALID_FILE,
           "version %s of package %s does not fit into a number", version, pkgName);
  *versionNum = (int32_t)number;
  return ACL_SUCCESS;
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version) {
  static const char *const names[] = {[ACL_PKG_NAME_CANN] = "cann",
                                      [ACL_PKG_NAME_RUNTIME] = "runtime",
                                      [ACL_PKG_NAME_COMPILER] = "compiler",
                                      [ACL_PKG_NAME_HCCL] = "hccl",
                                      [ACL_PKG_NAME_TOOLKIT] = "toolkit",
                                      [ACL_PKG_NAME_OPP] = "opp",
                                      [ACL_PKG_NAME_OPP_KERNEL] = "opp_kernel",
                                      [ACL_PKG_NAME_DRIVER] = "driver"};
  char text[ACL_PKG_VERSION_MAX_SIZE] = "";
  PG_CHECK_PTR(version, ACL_ERROR_INVALID_PARAM);
  PG_CHECK((int)name >= 0 && name <= ACL_PKG_NAME_DRIVER, ACL_ERROR_INVALID_PARAM,
           "name is %d, allowed is 0 to %d", (int)name, ACL_PKG_NAME_DRIVER);
  PG_TRY(package_version(__func__, names[name], text));
  const struct parts p = split(text);
  memset(version, 0, sizeof *version);
  memcpy(version->version, text, sizeof text);
  snprintf(version->majorVersion, sizeof version->majorVersion, "%d", p.major);
  snprintf(version->minorVersion, sizeof version->minorVersion, "%d", p.minor);
  snprintf(version->releaseVersion, sizeof version->releaseVersion, "%d", p.patch);
  if (p.stage != 0) snprintf(version->patchVersion, sizeof version->patchVersion, "%d", p.stage);
  return ACL_SUCCESS;
}

static const aclCannAttr attributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num) {
  PG_CHECK_PTR(cannAttrList, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(num, ACL_ERROR_INVALID_PARAM);
  *cannAttrList = attributes;
  *num = sizeof attributes / sizeof attributes[0];
  return ACL_SUCCESS;
}

/* Inf, NaN and bf16: yes.  Nothing is compiled at run time. */
aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value) {
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_CHECK((int)cannAttr >= ACL_CANN_ATTR_INF_NAN && cannAttr <= ACL_CANN_ATTR_JIT_COMPILE,
           ACL_ERROR_INVALID_PARAM, "cannAttr is %d, allowed is 0 to 2", (int)cannAttr);
  *value = cannAttr != ACL_CANN_ATTR_JIT_COMPILE;
  return ACL_SUCCESS;
}
