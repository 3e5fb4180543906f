/* SPDX-License-Identifier: Apache-2.0 */
/* aclnn's descriptors: a channels-last view of a buffer, and a sentence for a mistake. */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "poolgrad.h"

int main(void) {
  const int64_t dims[] = {1, 3, 4, 5}, strides[] = {60, 1, 15, 3}, storage[] = {60};
  int64_t *shown;
  uint64_t rank;
  printf("poolgrad %s\n%s", poolgrad_version(), poolgrad_devices());

  aclTensor *tensor =
      aclCreateTensor(dims, 4, ACL_FLOAT, strides, 0, ACL_FORMAT_NCHW, storage, 1, NULL);
  if (tensor == NULL || aclGetViewStrides(tensor, &shown, &rank) != ACL_SUCCESS) return 1;
  printf("strides:");
  for (uint64_t i = 0; i < rank; i++) printf(" %lld", (long long)shown[i]);
  printf("\n");
  free(shown);

  if (aclDestroyTensor(tensor) != ACL_SUCCESS) return 1;
  if (aclDestroyTensor(tensor) == ACL_SUCCESS) return 1; /* a mistake, and what it says: */
  printf("%s", aclGetRecentErrMsg());
  return 0;
}
