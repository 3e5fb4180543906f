/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction set is used, and which method computes a problem. */
#include "cpu/method.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/environment.h"
#include "core/status.h"
#include "cpu/cpu_features.h"
#include "cpu/fill.h"
#include "kernels/tiling.h"
#include "poolgrad.h"

/* TENSOR: kernels over tensors that each have a type of their own. */
enum element { F32, F16, BF16, F64, TENSOR, ELEMENT_COUNT };

/* The lists of one instruction set, in the order of enum element. */
#define PG_DECLARE_METHODS(isa)                                                      \
  extern const struct pg_cpu_methods pg_methods_##isa##_f32, pg_methods_##isa##_f16, \
      pg_methods_##isa##_bf16, pg_methods_##isa##_f64, pg_methods_##isa##_tensor;
#define PG_METHODS_ROW(isa, runs_here)                                          \
  {#isa,                                                                        \
   runs_here,                                                                   \
   {&pg_methods_##isa##_f32, &pg_methods_##isa##_f16, &pg_methods_##isa##_bf16, \
    &pg_methods_##isa##_f64, &pg_methods_##isa##_tensor}},

PG_EACH_ISA(PG_DECLARE_METHODS)

/* Integers have methods in plain C alone, whatever the instruction set. */
extern const struct pg_cpu_methods pg_methods_scalar_i8, pg_methods_scalar_u8,
    pg_methods_scalar_i16, pg_methods_scalar_u16, pg_methods_scalar_i32, pg_methods_scalar_i64;

/* Best first; the last one runs anywhere. */
static const struct isa {
  const char *name;
  bool (*runs_here)(void);
  const struct pg_cpu_methods *methods[ELEMENT_COUNT];
} isas[] = {PG_EACH_ISA_WITH_TEST(PG_METHODS_ROW)};

enum { ISAS = sizeof isas / sizeof isas[0] };

static _Atomic(const struct isa *) chosen; /* NULL: not decided yet */

static const struct isa *best_isa(void) {
  const struct isa *isa = isas;
  while (!isa->runs_here()) isa++;
  return isa;
}

static aclError forced_isa(const char *api, const char *name, const struct isa **out) {
  char usable[64] = "";
  for (const struct isa *isa = isas; isa < isas + ISAS; isa++) {
    if (!isa->runs_here()) continue;
    *out = isa;
    if (strcmp(isa->name, name) == 0) return ACL_SUCCESS;
    snprintf(usable + strlen(usable), sizeof usable - strlen(usable), " %s", isa->name);
  }
  return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                 "POOLGRAD_ISA is '%s', this library on this CPU has:%s", name, usable);
}

aclError pg_isa_configure(const char *api) {
  const char *name = pg_getenv("POOLGRAD_ISA");
  const struct isa *isa = best_isa();
  if (name != NULL && name[0] != '\0') PG_TRY(forced_isa(api, name, &isa));
  atomic_store(&chosen, isa);
  return ACL_SUCCESS;
}

/* If there was no aclInit and POOLGRAD_ISA is wrong, its error message stays with the thread, and
 * the best set is used. */
static const struct isa *chosen_isa(void) {
  const struct isa *isa = atomic_load_explicit(&chosen, memory_order_acquire);
  if (isa != NULL) return isa;
  return pg_isa_configure("POOLGRAD_ISA") == ACL_SUCCESS ? atomic_load(&chosen) : best_isa();
}

const char *poolgrad_isa(void) { return chosen_isa()->name; }

static const struct pg_cpu_methods *methods_of(const struct pg_problem *problem) {
  if (problem->kernel >= PG_MAP) return chosen_isa()->methods[TENSOR];
  switch (problem->dtype) {
    case ACL_FLOAT16:
      return chosen_isa()->methods[F16];
    case ACL_BF16:
      return chosen_isa()->methods[BF16];
    case ACL_DOUBLE:
      return chosen_isa()->methods[F64];
    case ACL_INT8:
      return &pg_methods_scalar_i8;
    case ACL_UINT8:
      return &pg_methods_scalar_u8;
    case ACL_INT16:
      return &pg_methods_scalar_i16;
    case ACL_UINT16:
      return &pg_methods_scalar_u16;
    case ACL_INT32:
      return &pg_methods_scalar_i32;
    case ACL_INT64:
      return &pg_methods_scalar_i64;
    default:
      return chosen_isa()->methods[F32];
  }
}

static const struct pg_cpu_method *find_method(const struct pg_problem *problem, int skip,
                                               struct pg_tiling *tiling) {
  const struct pg_cpu_method *const *method = methods_of(problem)->of[problem->kernel];
  for (; *method != NULL; method++)
    if ((*method)->fits(problem, tiling) && skip-- == 0) break;
  return *method;
}

bool pg_cpu_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice) {
  if (problem->kernel == PG_FILL) {
    *choice = (struct pg_choice){
        .name = pg_cpu_fill.name, .method = &pg_cpu_fill, .items = problem->args.fill.count};
    return skip == 0;
  }
  const struct pg_cpu_method *method = find_method(problem, skip, &choice->tiling);
  if (method == NULL) return false;
  choice->name = method->name;
  choice->method = method;
  choice->items = pg_tiling_items(&choice->tiling);
  choice->workspace_bytes =
      method->workspace != NULL ? method->workspace(problem, &choice->tiling) : 0;
  return true;
}
