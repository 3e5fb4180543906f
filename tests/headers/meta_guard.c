/* SPDX-License-Identifier: Apache-2.0 */

/* A client that declares the opaque types itself and says so with ACLNN_META: acl_meta.h must then
 * skip its own block, OK included. */

#include <stdint.h>

#define ACLNN_META
struct client_executor;
struct client_tensor;
typedef struct client_executor aclOpExecutor;
typedef struct client_tensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef int32_t aclnnStatus;
enum { OK = 7 };

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

aclnnStatus header_probe(const struct client_tensor *tensor);

aclnnStatus header_probe(const struct client_tensor *tensor) {
  return aclDestroyTensor(tensor) == OK ? aclnnFinalize() : 0;
}
