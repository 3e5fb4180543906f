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
  printf("poolgrad %s, its devices:\n%s", poolgrad_version(), poolgrad_devices());

  aclTensor *tensor =
      aclCreateTensor(dims, 4, ACL_FLOAT, strides, 0, ACL_FORMAT_NCHW, storage, 1, NULL);
  if (tensor == NULL || aclGetViewStrides(tensor, &shown, &rank) != ACL_SUCCESS) return 1;
  printf("the strides of a channels-last view, 1 x 3 x 4 x 5, of 60 floats\n ");
  for (uint64_t i = 0; i < rank; i++) printf(" %lld", (long long)shown[i]);
  printf("\n");
  free(shown);

  if (aclDestroyTensor(tensor) != ACL_SUCCESS) return 1;
  printf("a mistake on purpose: the tensor is destroyed a second time; the library says\n  ");
  if (aclDestroyTensor(tensor) == ACL_SUCCESS) return 1;
  printf("%s", aclGetRecentErrMsg());
  printf("summary: aclnn's descriptors: a view of a buffer, and the sentence for a mistake\n");
  return 0;
}
