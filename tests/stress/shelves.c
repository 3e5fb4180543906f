/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers share: handles; and what they do not: memory. */
#include "stress.h"

enum { SLOTS = 12, ODD_HANDLE = 8 };

static _Atomic(void *) shelves[SHELVES][SLOTS];

/* What any call may be given: not addresses, and not executors that only their maker runs. */
static bool is_for_all(enum shelf shelf) {
  return shelf != CONFIGS && shelf != BLOCKS && shelf != HOST_BLOCKS && shelf != REPEATABLES;
}

void *shelf_any(struct turn *t, enum shelf shelf) {
  const uint64_t slot = pick(t, SLOTS), odd = pick(t, 64), other = pick(t, SHELVES);
  if (odd == 0) return (void *)(uintptr_t)ODD_HANDLE;
  if (odd == 1 && is_for_all((enum shelf)other)) return atomic_load(&shelves[other][slot]);
  return atomic_load(&shelves[shelf][slot]);
}

void *shelf_put(struct turn *t, enum shelf shelf, void *handle) {
  return atomic_exchange(&shelves[shelf][pick(t, SLOTS)], handle);
}

void *shelf_take(struct turn *t, enum shelf shelf) { return shelf_put(t, shelf, NULL); }

static int destroy_stream_here(struct turn *t, aclrtStream stream, bool force) {
  return force ? CALL(t, aclrtDestroyStreamForce, (stream), STREAM_CODES)
               : CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

/* A stream is destroyed in its own context: if not the current one, then a device's default one.
 * Those of other contexts end with them. */
static void destroy_stream_anywhere(struct turn *t, aclrtStream stream, bool force) {
  int status = destroy_stream_here(t, stream, force);
  for (int32_t id = 0; id < DEVICES && status == ACL_ERROR_RT_STREAM_CONTEXT; id++) {
    CALL(t, aclrtSetDevice, (id), 0);
    status = destroy_stream_here(t, stream, force);
    CALL(t, aclrtResetDevice, (id), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  }
}

/* What was put into a shelf may be gone: its context ended, another thread was faster. */
void shelf_destroy(struct turn *t, enum shelf shelf, void *handle) {
  const bool other_way = chance(t, 3);
  if (handle == NULL) return;
  switch (shelf) {
    case CONTEXTS:
      CALL(t, aclrtDestroyContext, (handle), CONTEXT_CODES);
      break;
    case STREAMS:
      destroy_stream_anywhere(t, handle, other_way);
      break;
    case EVENTS:
      CALL(t, aclrtDestroyEvent, (handle), ACL_ERROR_RT_INVALID_HANDLE);
      break;
    case NOTIFIES:
      CALL(t, aclrtDestroyNotify, (handle), ACL_ERROR_RT_INVALID_HANDLE);
      break;
    case CONFIGS:
      CALL(t, aclrtDestroyStreamConfigHandle, (handle), 0);
      break;
    case BLOCKS:
      if (other_way)
        CALL(t, aclrtFreeWithDevSync, (handle), CONTEXT_CODES, OUTCOMES,
             ACL_ERROR_RT_PARAM_INVALID);
      else
        CALL(t, aclrtFree, (handle), ACL_ERROR_RT_PARAM_INVALID);
      break;
    case HOST_BLOCKS:
      if (other_way)
        CALL(t, aclrtFreeHostWithDevSync, (handle), CONTEXT_CODES, OUTCOMES,
             ACL_ERROR_RT_PARAM_INVALID);
      else
        CALL(t, aclrtFreeHost, (handle), ACL_ERROR_RT_PARAM_INVALID);
      break;
    case BUFFERS:
      CALL(t, aclDestroyDataBuffer, (handle), ACL_ERROR_INVALID_PARAM);
      break;
    case TENSORS:
      CALL(t, aclDestroyTensor, (handle), 161002);
      break;
    case TENSOR_LISTS:
      CALL(t, aclDestroyTensorList, (handle), 161002);
      break;
    case SCALARS:
      CALL(t, aclDestroyScalar, (handle), 161002);
      break;
    case SCALAR_LISTS:
      CALL(t, aclDestroyScalarList, (handle), 161002);
      break;
    case INT_ARRAYS:
      CALL(t, aclDestroyIntArray, (handle), 161002);
      break;
    case FLOAT_ARRAYS:
      CALL(t, aclDestroyFloatArray, (handle), 161002);
      break;
    case BOOL_ARRAYS:
      CALL(t, aclDestroyBoolArray, (handle), 161002);
      break;
    default:
      CALL(t, aclDestroyAclOpExecutor, (handle), 561000);
  }
}

void shelves_clear(struct turn *t) {
  for (int shelf = 0; shelf < SHELVES; shelf++)
    for (int slot = 0; slot < SLOTS; slot++) {
      void *handle = atomic_exchange(&shelves[shelf][slot], NULL);
      if (shelf == CONFIGS || shelf >= BUFFERS) shelf_destroy(t, (enum shelf)shelf, handle);
    }
}

/* --- memory --- */

static void *fresh_from(char *arena, size_t *used, size_t room, size_t bytes) {
  const size_t rounded = (bytes + 63) / 64 * 64;
  if (rounded > room - *used) return NULL;
  *used += rounded;
  return arena + *used - rounded;
}

void *fresh(struct turn *t, size_t bytes) {
  return fresh_from(t->worker->arena, &t->worker->used, ARENA_BYTES, bytes);
}

void *fresh_pinned(struct turn *t, size_t bytes) {
  return fresh_from(t->worker->pinned, &t->worker->used_pinned, ARENA_BYTES, bytes);
}

void *fresh_large(struct turn *t, size_t bytes) {
  return fresh_from(t->worker->large, &t->worker->used_large, LARGE_BYTES, bytes);
}
