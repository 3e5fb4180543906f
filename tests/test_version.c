/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, attributes, and the names that clients look for. */
#include "expect.h"

#include <sys/stat.h>
#include <unistd.h>

#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "poolgrad.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclrtGetVersion and its kin */

/* Names that no header declares, as their callers see them. */
extern aclnnStatus aclnnIndexPutImpl(void *, uint64_t, aclOpExecutor *, aclrtStream);
extern aclnnStatus aclnnIndexPutImplGetWorkspaceSize(aclTensor *, const aclTensorList *,
                                                     const aclTensor *, bool, bool, uint64_t *,
                                                     aclOpExecutor **);
extern int InitHugeMemThreadLocal(void *, bool);
extern void UnInitHugeMemThreadLocal(void *, bool);
extern void ReleaseHugeMem(void *, bool);

static char home[] = "/tmp/poolgrad-home-XXXXXX";

static void make_path(char *path, size_t room, const char *package, const char *file) {
  snprintf(path, room, "%s/share/info/%s%s", home, package, file);
}

static void add_package(const char *package, const char *content) {
  char path[512];
  make_path(path, sizeof path, package, "");
  assert_int_equal(mkdir(path, 0700), 0);
  make_path(path, sizeof path, package, "/version.info");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(content, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void remove_package(const char *package) {
  char path[512];
  make_path(path, sizeof path, package, "/version.info");
  assert_int_equal(unlink(path), 0);
  make_path(path, sizeof path, package, "");
  assert_int_equal(rmdir(path), 0);
}

static int set_up_home(void **state) {
  char path[512];
  (void)state;
  if (mkdtemp(home) == NULL || setenv("ASCEND_HOME_PATH", home, 1) != 0) return 1;
  snprintf(path, sizeof path, "%s/share", home);
  if (mkdir(path, 0700) != 0) return 1;
  snprintf(path, sizeof path, "%s/share/info", home);
  return mkdir(path, 0700);
}

static int tear_down_home(void **state) {
  static const char *const below[] = {"/share/info", "/share", ""};
  char path[512];
  (void)state;
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s%s", home, below[i]);
    if (rmdir(path) != 0) return 1;
  }
  return 0;
}

static void expect_version(const char *package, const char *expected) {
  char name[64], version[ACL_PKG_VERSION_MAX_SIZE] = "";
  snprintf(name, sizeof name, "%s", package);
  OK_OR_SAY(aclsysGetVersionStr(name, version));
  assert_string_equal(version, expected);
  assert_string_equal(name, package);
}

static void expect_number(const char *content, int32_t expected) {
  int32_t number = -1;
  add_package("runtime", content);
  const aclError status = aclsysGetVersionNum((char[]){"runtime"}, &number);
  remove_package("runtime");
  if (status != ACL_SUCCESS || number != expected)
    fail_msg("%s gave %d with status %d, expected %d", content, number, status, expected);
}

static void the_interface_is_1_17_0(void **state) {
  (void)state;
  int32_t major, minor, patch;
  OK_OR_SAY(aclrtGetVersion(&major, &minor, &patch));
  assert_int_equal(major, 1);
  assert_int_equal(minor, 17);
  assert_int_equal(patch, 0);
  FAILS(aclrtGetVersion(NULL, &minor, &patch), ACL_ERROR_INVALID_PARAM, "aclrtGetVersion");
  FAILS(aclrtGetVersion(&major, NULL, &patch), ACL_ERROR_INVALID_PARAM, "aclrtGetVersion");
  FAILS(aclrtGetVersion(&major, &minor, NULL), ACL_ERROR_INVALID_PARAM, "aclrtGetVersion");
}

static void the_library_has_a_version_of_its_own(void **state) {
  (void)state;
  int major, minor, patch;
  char rest;
  assert_int_equal(sscanf(poolgrad_version(), "%d.%d.%d%c", &major, &minor, &patch, &rest), 3);
}

static void a_package_version_is_read_from_its_file(void **state) {
  (void)state;
  add_package("runtime", "# a comment\nName=x\nVersion=9.1.0\r\nOther=1\n");
  expect_version("runtime", "9.1.0");
  remove_package("runtime");
}

static void dashes_and_underscores_in_names_are_the_same(void **state) {
  (void)state;
  add_package("opp_kernel", "Version=1.2.3\n");
  add_package("ops-nn", "Version=4.5.6\n");
  expect_version("opp_kernel", "1.2.3");
  expect_version("opp-kernel", "1.2.3");
  expect_version("ops-nn", "4.5.6");
  expect_version("ops_nn", "4.5.6");
  remove_package("opp_kernel");
  remove_package("ops-nn");
}

static void a_version_becomes_a_number(void **state) {
  (void)state;
  expect_number("Version=9.1.0\n", 90100000);
  expect_number("Version=8.2.15\n", 80215000);
  expect_number("Version=9.1.0.alpha003\n", 90100000 - 300 + 3);
  expect_number("Version=9.1.0-beta.2\n", 90100000 - 200 + 2);
  expect_number("Version=9.1.0.beta2\n", 90100000 - 200 + 2);
  expect_number("Version=9.1.0.RC1\n", 90100000 - 100 + 1);
}

static void a_version_too_large_for_the_number_is_refused(void **state) {
  (void)state;
  int32_t number = 7;
  add_package("runtime", "Version=99999.1.0\n");
  (void)aclGetRecentErrMsg();
  const aclError status = aclsysGetVersionNum((char[]){"runtime"}, &number);
  remove_package("runtime");
  assert_int_not_equal(status, ACL_SUCCESS);
  assert_non_null(aclGetRecentErrMsg());
  assert_int_equal(number, 7);
}

static void a_version_comes_in_parts(void **state) {
  (void)state;
  aclCANNPackageVersion version;
  add_package("opp_kernel", "Version=9.1.4\n");
  OK_OR_SAY(aclsysGetCANNVersion(ACL_PKG_NAME_OPP_KERNEL, &version));
  assert_string_equal(version.version, "9.1.4");
  assert_string_equal(version.majorVersion, "9");
  assert_string_equal(version.minorVersion, "1");
  assert_string_equal(version.releaseVersion, "4");
  remove_package("opp_kernel");
}

static void unknown_packages_are_refused(void **state) {
  (void)state;
  char text[ACL_PKG_VERSION_MAX_SIZE] = "untouched";
  int32_t number = 7;
  aclCANNPackageVersion version;
  FAILS(aclsysGetVersionStr((char[]){"nothing"}, text), ACL_ERROR_INVALID_FILE,
        "aclsysGetVersionStr", "nothing");
  FAILS(aclsysGetVersionNum((char[]){"nothing"}, &number), ACL_ERROR_INVALID_FILE,
        "aclsysGetVersionNum", "nothing");
  FAILS(aclsysGetCANNVersion(ACL_PKG_NAME_HCCL, &version), ACL_ERROR_INVALID_FILE,
        "aclsysGetCANNVersion", "hccl");
  FAILS(aclsysGetVersionStr((char[]){"../info/x"}, text), ACL_ERROR_INVALID_FILE, "../info/x");
  assert_string_equal(text, "untouched");
  assert_int_equal(number, 7);
}

static void a_file_without_a_version_is_refused(void **state) {
  (void)state;
  char text[ACL_PKG_VERSION_MAX_SIZE];
  add_package("driver", "Name=x\nversion=1\n");
  FAILS(aclsysGetVersionStr((char[]){"driver"}, text), ACL_ERROR_INVALID_FILE, "driver",
        "Version=");
  remove_package("driver");
}

/* Opening a pipe that nobody writes to would wait for ever. */
static void a_pipe_is_no_version_file(void **state) {
  (void)state;
  char text[ACL_PKG_VERSION_MAX_SIZE], path[512];
  add_package("driver", "");
  make_path(path, sizeof path, "driver", "/version.info");
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  (void)alarm(60); /* ends the process if it hangs */
  FAILS(aclsysGetVersionStr((char[]){"driver"}, text), ACL_ERROR_INVALID_FILE, "driver",
        "cannot be opened");
  (void)alarm(0);
  remove_package("driver");
}

static void without_a_home_no_package_has_a_version(void **state) {
  (void)state;
  char text[ACL_PKG_VERSION_MAX_SIZE];
  aclCANNPackageVersion version;
  unsetenv("ASCEND_HOME_PATH");
  FAILS(aclsysGetVersionStr((char[]){"runtime"}, text), ACL_ERROR_INVALID_FILE, "ASCEND_HOME_PATH");
  FAILS(aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &version), ACL_ERROR_INVALID_FILE,
        "ASCEND_HOME_PATH");
  setenv("ASCEND_HOME_PATH", home, 1);
}

static void version_functions_check_their_arguments(void **state) {
  (void)state;
  char name[] = "runtime", text[ACL_PKG_VERSION_MAX_SIZE];
  int32_t number;
  aclCANNPackageVersion version;
  FAILS(aclsysGetVersionStr(NULL, text), ACL_ERROR_INVALID_PARAM, "pkgName");
  FAILS(aclsysGetVersionStr(name, NULL), ACL_ERROR_INVALID_PARAM, "versionStr");
  FAILS(aclsysGetVersionNum(NULL, &number), ACL_ERROR_INVALID_PARAM, "pkgName");
  FAILS(aclsysGetVersionNum(name, NULL), ACL_ERROR_INVALID_PARAM, "versionNum");
  FAILS(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, NULL), ACL_ERROR_INVALID_PARAM, "version");
  FAILS(aclsysGetCANNVersion((aclCANNPackageName)8, &version), ACL_ERROR_INVALID_PARAM, "8");
  FAILS(aclsysGetCANNVersion((aclCANNPackageName)-1, &version), ACL_ERROR_INVALID_PARAM, "-1");
}

static void the_attribute_list_holds_what_is_there(void **state) {
  (void)state;
  const aclCannAttr *list;
  size_t count;
  int32_t value;
  OK_OR_SAY(aclGetCannAttributeList(&list, &count));
  BETWEEN(count, 1, 3);
  for (size_t i = 0; i < count; i++) {
    OK_OR_SAY(aclGetCannAttribute(list[i], &value));
    assert_int_equal(value, 1);
  }
  OK_OR_SAY(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value));
  assert_int_equal(value, 1);
  OK_OR_SAY(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value));
  assert_int_equal(value, 0);
}

static void attributes_check_their_arguments(void **state) {
  (void)state;
  const aclCannAttr *list;
  size_t count;
  int32_t value;
  FAILS(aclGetCannAttributeList(NULL, &count), ACL_ERROR_INVALID_PARAM, "cannAttrList");
  FAILS(aclGetCannAttributeList(&list, NULL), ACL_ERROR_INVALID_PARAM, "num");
  FAILS(aclGetCannAttribute(ACL_CANN_ATTR_BF16, NULL), ACL_ERROR_INVALID_PARAM, "value");
  FAILS(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM, "-1");
  FAILS(aclGetCannAttribute((aclCannAttr)3, &value), ACL_ERROR_INVALID_PARAM, "3");
}

static void expect_compatible(const char *product, int32_t expected) {
  int32_t found = -1;
  OK_OR_SAY(aclrtCheckArchCompatibility(product, &found));
  assert_int_equal(found, expected);
}

static void products_of_one_architecture_are_compatible(void **state) {
  (void)state;
  expect_compatible("Ascend950", 1);
  expect_compatible("Ascend910_9599", 1);
  expect_compatible("Ascend910B1", 0);
  expect_compatible("Ascend910_9391", 0);
  expect_compatible("Ascend310P3", 0);
  expect_compatible("", 0);
  int32_t found;
  FAILS(aclrtCheckArchCompatibility(NULL, &found), ACL_ERROR_INVALID_PARAM, "socVersion");
  FAILS(aclrtCheckArchCompatibility("Ascend910B1", NULL), ACL_ERROR_INVALID_PARAM, "canCompatible");
}

static void an_operator_that_only_has_a_name_is_refused(void **state) {
  (void)state;
  uint64_t size = 7;
  aclOpExecutor *executor = NULL;
  FAILS(aclnnIndexPutImplGetWorkspaceSize(NULL, NULL, NULL, false, false, &size, &executor),
        ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "aclnnIndexPutImplGetWorkspaceSize",
        "aclnnInplaceMaskedFillScalar");
  FAILS(aclnnIndexPutImpl(NULL, 0, NULL, NULL), ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
        "aclnnIndexPutImpl:", "Not_Supported(EZ1010)");
  assert_int_equal(size, 7);
  assert_null(executor);
}

static void the_brackets_of_torch_do_nothing(void **state) {
  (void)state;
  assert_int_equal(InitHugeMemThreadLocal(NULL, false), 0);
  ReleaseHugeMem(NULL, false);
  UnInitHugeMemThreadLocal(NULL, false);
  assert_null(aclGetRecentErrMsg());
}

static void aclnn_may_be_initialised_more_than_once(void **state) {
  (void)state;
  OK_OR_SAY(aclnnInit(NULL));
  OK_OR_SAY(aclnnInit("/no/such/file.json"));
  OK_OR_SAY(aclnnFinalize());
  OK_OR_SAY(aclnnFinalize());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_interface_is_1_17_0),
      cmocka_unit_test(the_library_has_a_version_of_its_own),
      cmocka_unit_test(a_package_version_is_read_from_its_file),
      cmocka_unit_test(dashes_and_underscores_in_names_are_the_same),
      cmocka_unit_test(a_version_becomes_a_number),
      cmocka_unit_test(a_version_too_large_for_the_number_is_refused),
      cmocka_unit_test(a_version_comes_in_parts),
      cmocka_unit_test(unknown_packages_are_refused),
      cmocka_unit_test(a_file_without_a_version_is_refused),
      cmocka_unit_test(a_pipe_is_no_version_file),
      cmocka_unit_test(without_a_home_no_package_has_a_version),
      cmocka_unit_test(version_functions_check_their_arguments),
      cmocka_unit_test(the_attribute_list_holds_what_is_there),
      cmocka_unit_test(attributes_check_their_arguments),
      cmocka_unit_test(products_of_one_architecture_are_compatible),
      cmocka_unit_test(an_operator_that_only_has_a_name_is_refused),
      cmocka_unit_test(the_brackets_of_torch_do_nothing),
      cmocka_unit_test(aclnn_may_be_initialised_more_than_once),
  };
  return cmocka_run_group_tests(tests, set_up_home, tear_down_home);
}
