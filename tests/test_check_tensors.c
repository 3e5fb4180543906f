/* SPDX-License-Identifier: Apache-2.0 */
/* What all operators on tensors of any shape refuse alike, in which words and in which order; their
 * own rules are in test_check_tensor_rules.c. */
#include "expect.h"

#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "tensor_check.h"

/* --- mistakes ----------------------------------------------------------------------------------
 *
 * A mistake is a letter and the number of a tensor, or of another argument of its kind. */
static const char mistakes[] =
    "d "  /* the tensor's handle is a destroyed one */
    "D "  /* the scalar's is */
    "c "  /* the scalar is complex */
    "a "  /* the array's handle is a destroyed one */
    "L "  /* the list's is */
    "t "  /* the tensor is complex */
    "e "  /* the tensor's type is not that of the other */
    "f "  /* its format is private */
    "r "  /* it has nine axes */
    "n "  /* a dim is negative */
    "s "  /* its shape is another */
    "v "  /* a stride is negative */
    "o "  /* its offset is */
    "z "; /* a stride is 0 along an axis that is written */

/* The order in which an operator looks for them. */
static const char *order_of(enum tensor_operator_id op) {
  const bool in_place = strncmp(tensor_operators[op].arguments, "selfRef", 7) == 0;
  switch (tensor_operators[op].kind) {
    case KIND_UNARY:
      return in_place ? "d0 t0 f0 r0 n0 v0 z0 o0"
                      : "d0 d1 t0 t1 f0 r0 n0 f1 r1 n1 s1 v0 o0 v1 z1 o1";
    case KIND_SCALAR:
      return in_place ? "d0 D0 c0 t0 f0 r0 n0 v0 z0 o0"
                      : "d0 d1 D0 c0 t0 t1 f0 r0 n0 f1 r1 n1 s1 v0 o0 v1 z1 o1";
    case KIND_BINARY:
      if (op == OP_IsClose)
        return "d0 d1 d2 t0 e1 t2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s2 v0 o0 v1 o1 v2 z2 o2";
      return in_place ? "d0 d1 t0 t1 f0 r0 n0 f1 r1 n1 s1 v0 z0 o0 v1 o1"
                      : "d0 d1 d2 t0 t1 t2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s2 v0 o0 v1 o1 v2 z2 o2";
    case KIND_PASS:
      return "d0 d1 d2 D0 c0 t0 e1 e2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s2 v0 o0 v1 o1 v2 z2 o2";
    case KIND_COPY:
      if (op == OP_Cast) return "d1 d0 e1 s1 t0 f1 f0 v1 z1 o1 v0 o0";
      return op == OP_InplaceCopy ? "d0 d1 t0 t1 f0 r0 n0 f1 r1 n1 s1 v0 z0 o0 v1 o1"
                                  : "d1 d0 e1 s1 f1 f0 v1 z1 o1 v0 o0";
    case KIND_FILL:
      return op == OP_InplaceFillScalar ? "D0 c0 d0 t0 f0 r0 n0 v0 z0 o0"
                                        : "d0 t0 f0 r0 n0 v0 z0 o0";
    case KIND_MASKED:
      return "d0 d1 D0 c0 t0 f0 r0 n0 t1 f1 r1 n1 s1 v0 z0 o0 v1 o1";
    case KIND_REDUCE:
      return "d0 d1 t0 t1 f0 r0 n0 f1 r1 n1 a0 s1 v0 o0 v1 z1 o1";
    case KIND_EXTREME:
      return "d0 d1 t0 t1 f0 r0 n0 f1 r1 s1 v0 o0 o1";
    case KIND_ALONG:
      return "d0 d1 d2 t0 t1 t2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s1 s2 v0 o0 v1 z1 o1 v2 z2 o2";
    case KIND_GATHER:
      return "d0 d1 d2 t0 t1 e2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s1 s2 v0 o0 v1 o1 v2 z2 o2";
    case KIND_UNPOOL2D:
      return "d0 d1 d2 t0 t1 e2 a0 v0 o0 v1 o1 v2 z2 o2";
    case KIND_UNPOOL3D:
      return "d0 d1 d2 t0 t1 e2 a0 a1 a2 v0 o0 v1 o1 v2 z2 o2";
    case KIND_SELECT:
      return "d0 d1 d2 t0 t1 e2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s1 v0 o0 v1 o1 o2";
    case KIND_EQUAL:
      return "d0 d1 d2 t0 e1 t2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s2 v0 o0 v1 o1 v2 o2";
    case KIND_LIST:
      return op == OP_ForeachMulScalarV2
                 ? "D0 c0 L0 L1 t0 t1 f0 r0 n0 f1 r1 n1 s1 v0 o0 v1 z1 o1"
                 : "D0 c0 L0 L1 L2 t0 t1 t2 f0 r0 n0 f1 r1 n1 f2 r2 n2 s2 v0 o0 v1 o1 v2 z2 o2";
    case KIND_CAT:
      return "d1 L0 t1 f1 r1 n1 v1 z1 o1 t0 f0 r0 n0 v0 o0 s0";
  }
  return "";
}

static const void *destroyed[IS_NUMBER]; /* by enum argument_kind */

static int make_destroyed(void **state) {
  static const int64_t one = 1;
  const int status = set_up_device(state);
  aclTensorList *list = aclCreateTensorList(NULL, 0);
  aclScalar *scalar = aclCreateScalar((void *)(uintptr_t)&one, ACL_INT64);
  aclIntArray *array = aclCreateIntArray(&one, 1);
  aclTensor *tensor = aclCreateTensor(&one, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &one, 1, NULL);
  destroyed[IS_LIST] = list;
  destroyed[IS_SCALAR] = scalar;
  destroyed[IS_ARRAY] = array;
  destroyed[IS_TENSOR] = tensor;
  return status != 0 || aclDestroyTensorList(list) != 0 || aclDestroyScalar(scalar) != 0 ||
         aclDestroyIntArray(array) != 0 || aclDestroyTensor(tensor) != 0;
}

static bool changes_shape(char mistake) { return strchr("rns", mistake) != NULL; }

static void set_strides(struct called_tensor *t) {
  int64_t stride = 1;
  if (t->strided) return;
  t->strided = true;
  for (int i = t->rank - 1; i >= 0; i--) {
    t->strides[i] = stride;
    stride *= t->dims[i];
  }
}

static void give_nine_axes(struct called_tensor *t) {
  static const int64_t nine[] = {1, 1, 1, 1, 1, 1, 1, 2, 3};
  tensor_call_shape(t, 9, nine);
}

static void make_mistake(struct tensor_call *c, char mistake, int number) {
  struct called_tensor *t = &c->t[number];
  switch (mistake) {
    case 'd':
      t->handle = &destroyed[IS_TENSOR];
      return;
    case 'D':
      c->s[number].handle = &destroyed[IS_SCALAR];
      return;
    case 'a':
      c->a[number].handle = &destroyed[IS_ARRAY];
      return;
    case 'L':
      c->list_handle[number] = &destroyed[IS_LIST];
      return;
    case 'c':
      c->s[number].dtype = ACL_COMPLEX64;
      return;
    case 't':
      t->dtype = ACL_COMPLEX64;
      return;
    case 'e':
      t->dtype = ACL_UINT16;
      return;
    case 'f':
      t->format = ACL_FORMAT_FRACTAL_NZ;
      return;
    case 'r':
      give_nine_axes(t);
      return;
    case 'n':
      t->dims[0] = -7;
      return;
    case 's':
      tensor_call_shape(t, 2, (const int64_t[]){4, 7});
      return;
    case 'o':
      t->offset = -5;
      return;
    default:
      set_strides(t);
      t->strides[0] = mistake == 'v' ? -4 : 0;
  }
}

/* --- what is said of them --- */

#define REALS "DT_FLOAT, DT_FLOAT16, DT_BF16"
#define WHOLE "DT_INT8, DT_INT16, DT_INT32, DT_INT64"

static bool takes_reals_alone(enum tensor_operator_id op) {
  return op == OP_InplaceNormal || op == OP_InplaceUniform;
}

static bool takes_no_truths(enum tensor_operator_id op) {
  static const enum tensor_operator_id those[] = {OP_Sub,
                                                  OP_InplaceSub,
                                                  OP_Subs,
                                                  OP_InplaceSubs,
                                                  OP_Abs,
                                                  OP_Neg,
                                                  OP_Relu,
                                                  OP_InplaceRelu,
                                                  OP_Ceil,
                                                  OP_Floor,
                                                  OP_MaxUnpool2d,
                                                  OP_MaxUnpool3d,
                                                  OP_ThresholdBackward};
  for (size_t i = 0; i < sizeof those / sizeof those[0]; i++)
    if (those[i] == op) return true;
  return false;
}

/* The types that a tensor may have, in the words of the sentence. */
static const char *types_of(enum tensor_operator_id op, const char *name) {
  const enum tensor_kind kind = tensor_operators[op].kind;
  if (strcmp(name, "mask") == 0) return "DT_UINT8 or DT_BOOL";
  if (strcmp(name, "indices") == 0 || strcmp(name, "index") == 0) return "DT_INT32 or DT_INT64";
  if (kind == KIND_REDUCE && (op == OP_All || op == OP_Any) && strcmp(name, "out") == 0)
    return "DT_UINT8 or DT_BOOL";
  if ((op == OP_BitwiseAndTensor || op == OP_BitwiseAndScalar) && strcmp(name, "out") != 0)
    return WHOLE ", DT_UINT8 or DT_BOOL";
  if (op == OP_Equal && strcmp(name, "out") == 0) return "DT_BOOL";
  if (takes_reals_alone(op)) return REALS " or DT_DOUBLE";
  if (takes_no_truths(op) && strcmp(name, "out") != 0)
    return REALS ", DT_DOUBLE, " WHOLE " or DT_UINT8";
  return REALS ", DT_DOUBLE, " WHOLE ", DT_UINT8 or DT_BOOL";
}

/* A list and a tensor never have one number. */
static bool is_of_kind(enum argument_kind found, enum argument_kind wanted) {
  return found == wanted || (wanted == IS_TENSOR && found == IS_LIST);
}

/* The argument of this kind with this number; lists are tensors too. */
static struct tensor_argument argument_of(enum tensor_operator_id op, enum argument_kind kind,
                                          int number) {
  struct tensor_argument all[ARGUMENTS_MOST];
  const int count = tensor_operator_arguments(op, all);
  for (int i = 0; i < count; i++)
    if (is_of_kind(all[i].kind, kind) && all[i].number == number) return all[i];
  fail_msg("%s has no argument %d of kind %d", tensor_operators[op].first_name, number, (int)kind);
  return all[0];
}

static void handle_sentence(enum tensor_operator_id op, char mistake, int number, char *text,
                            size_t room) {
  static const struct {
    char mistake;
    enum argument_kind kind;
    const char *found, *wanted;
  } rows[] = {{'d', IS_TENSOR, "a destroyed tensor", "aclTensor"},
              {'D', IS_SCALAR, "a destroyed scalar", "aclScalar"},
              {'a', IS_ARRAY, "a destroyed int array", "aclIntArray"},
              {'L', IS_LIST, "a destroyed tensor list", "aclTensorList"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].mistake == mistake)
      (void)snprintf(text, room, "%s is %s, a live %s is required",
                     argument_of(op, rows[i].kind, number).name, rows[i].found, rows[i].wanted);
}

static const char *shape_sentence(enum tensor_operator_id op, int number) {
  switch (tensor_operators[op].kind) {
    case KIND_UNARY:
    case KIND_SCALAR:
      return "out is [4,7], expected self's shape [2,3]";
    case KIND_PASS:
      return "out is [4,7], expected the shape that gradOutput and self have together, [2,3]";
    case KIND_EQUAL:
      return "out is [4,7], it must have one element";
    case KIND_CAT:
      return op == OP_Cat ? "tensors[0] is [4,7] and out [4,3], only axis 0 may differ"
                          : "tensors[0] is [4,7], expected out's shape without axis 0, [2,3]";
    case KIND_BINARY:
    case KIND_LIST:
      if (strncmp(tensor_operators[op].arguments, "selfRef", 7) == 0)
        return "selfRef is [2,3] and other [4,7], from the last axis on their lengths must be "
               "equal "
               "or 1";
      if (op == OP_ForeachAddListV2)
        return "out[0] is [4,7], expected the shape that x1[0] and x2[0] have together, [2,3]";
      if (op == OP_ForeachMulScalarV2) return "out[0] is [4,7], expected x[0]'s shape [2,3]";
      return "out is [4,7], expected the shape that self and other have together, [2,3]";
    case KIND_COPY:
      if (op == OP_Cast) return "out is [4,7], expected self's shape [2,3]";
      return op == OP_InplaceCopy ? "src is [4,7] and selfRef [2,3], from the last axis on their "
                                    "lengths must be equal or 1"
                                  : "dstTensor is [4,7], expected srcTensor's shape [2,3]";
    case KIND_MASKED:
      return "selfRef is [2,3] and mask [4,7], from the last axis on their lengths must be equal "
             "or "
             "1";
    case KIND_SELECT:
      return "self is [2,3] and mask [4,7], from the last axis on their lengths must be equal or 1";
    case KIND_REDUCE:
      return "out is [4,7], expected self's shape without what is reduced, [2]";
    case KIND_EXTREME:
      return "out is [4,7], it must have one element";
    case KIND_ALONG:
      return number == 1 ? "out is [4,7], expected self's shape without what is reduced, [2]"
                         : "indices is [4,7], expected self's shape without what is reduced, [2]";
    case KIND_GATHER:
      return number == 1 ? "index is [4,7] and self [2,3], index must not be longer on axis 0"
                         : "out is [4,7], expected index's shape [2,3]";
    default:
      return "?";
  }
}

/* The tensor that another one must have the type of. */
static const char *whose_type(enum tensor_operator_id op) {
  if (op == OP_NpuFormatCast) return "srcTensor";
  return op == OP_ThresholdBackward ? "gradOutput" : "self";
}

/* A list's tensors have numbers in sentences. */
static void tensor_sentence(const struct tensor_call *right, char mistake, int number, char *text,
                            size_t room) {
  const enum tensor_operator_id op = right->op;
  const struct tensor_argument argument = argument_of(op, IS_TENSOR, number);
  const struct called_tensor *t = &right->t[number];
  char name[32], dims[64] = "-7";
  (void)snprintf(name, sizeof name, "%s%s", argument.name, argument.kind == IS_LIST ? "[0]" : "");
  for (int i = 1; i < t->rank; i++)
    (void)snprintf(dims + strlen(dims), sizeof dims - strlen(dims), ",%d", (int)t->dims[i]);
  switch (mistake) {
    case 't':
      (void)snprintf(text, room, "%s is DT_COMPLEX64, allowed is %s", name,
                     types_of(op, argument.name));
      return;
    case 'e':
      if (op == OP_Cast)
        (void)snprintf(text, room, "out is DT_UINT16, dtype says DT_FLOAT");
      else
        (void)snprintf(text, room, "%s is DT_UINT16, expected %s's DT_FLOAT", name, whose_type(op));
      return;
    case 'f':
      (void)snprintf(text, room,
                     "%s has format FRACTAL_NZ, allowed is a plain format, such as ND or NCHW",
                     name);
      return;
    case 'r':
      (void)snprintf(text, room, "%s is [1,1,1,1,1,1,1,2,3], it must have at most 8 axes", name);
      return;
    case 'n':
      (void)snprintf(text, room, "%s is [%s], no dim may be negative", name, dims);
      return;
    case 's':
      (void)snprintf(text, room, "%s", shape_sentence(op, number));
      return;
    case 'v':
      (void)snprintf(text, room, "%s has stride -4 on axis 0, no stride may be negative", name);
      return;
    case 'o':
      (void)snprintf(text, room, "%s has offset -5, it must not be negative", name);
      return;
    default:
      (void)snprintf(text, room,
                     "%s has stride 0 on axis 0 of length %d, its cells must not share memory",
                     name, (int)t->dims[0]);
  }
}

static void sentence_of(const struct tensor_call *right, char mistake, int number, char *text,
                        size_t room) {
  if (strchr("dDaL", mistake) != NULL)
    handle_sentence(right->op, mistake, number, text, room);
  else if (mistake == 'c')
    (void)snprintf(text, room, "%s is DT_COMPLEX64, allowed is a real, an integer or DT_BOOL",
                   argument_of(right->op, IS_SCALAR, number).name);
  else
    tensor_sentence(right, mistake, number, text, room);
}

/* --- tests --- */

/* Does the later mistake hide the earlier one, because both are about one thing? */
static bool is_hidden(const char *earlier, const char *later) {
  return earlier[1] == later[1] &&
         ((changes_shape(earlier[0]) && changes_shape(later[0])) ||
          (strchr("vz", earlier[0]) != NULL && strchr("vz", later[0]) != NULL));
}

/* A shape that is wrong is that of the right call in all else; what a stride is 0 along is not. */
static void expect_first_of(enum tensor_operator_id op, const char *earlier, const char *later) {
  const struct tensor_call right = tensor_call_right(op);
  struct tensor_call c = right;
  char text[300];
  if (later != NULL && is_hidden(earlier, later)) return;
  if (later != NULL) make_mistake(&c, later[0], later[1] - '0');
  make_mistake(&c, earlier[0], earlier[1] - '0');
  sentence_of(&right, earlier[0], earlier[1] - '0', text, sizeof text);
  tensor_refused(&c, ACLNN_ERR_PARAM_INVALID, "%s", text);
}

static void mistakes_are_refused_in_order(void **state) {
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    const char *order = order_of(op);
    for (const char *at = order; *at != '\0'; at += at[2] == '\0' ? 2 : 3) {
      assert_non_null(strchr(mistakes, at[0]));
      expect_first_of(op, at, NULL);
      for (const char *later = at + 2; *later != '\0'; later += 3) {
        expect_first_of(op, at, later + 1);
        if (later[3] == '\0') break;
      }
    }
  }
}

static void the_right_calls_are_accepted(void **state) {
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    const struct tensor_call c = tensor_call_right(op);
    tensor_accepted(&c);
  }
}

/* Puts a handle in the place of an argument; false: it is a number. */
static bool replace(struct tensor_call *c, const struct tensor_argument *argument,
                    const void *const *handle) {
  switch (argument->kind) {
    case IS_TENSOR:
      c->t[argument->number].handle = handle;
      return true;
    case IS_SCALAR:
      c->s[argument->number].handle = handle;
      return true;
    case IS_ARRAY:
      c->a[argument->number].handle = handle;
      return true;
    case IS_LIST:
      c->list_handle[argument->number] = handle;
      return true;
    default:
      return false;
  }
}

/* The first NULL is named, and wins over any other mistake. */
static void nulls_are_refused_in_order(void **state) {
  const void *const null = NULL;
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    struct tensor_call c = tensor_call_right(op);
    struct tensor_argument all[ARGUMENTS_MOST];
    const int count = tensor_operator_arguments(op, all);
    for (int i = 0; i < TENSORS_MOST; i++) c.t[i].dtype = ACL_COMPLEX64;
    for (int i = count - 1; i >= 0; i--)
      if (replace(&c, &all[i], &null))
        tensor_refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required",
                       all[i].name);
  }
}

static void a_null_wins_over_a_dead_handle(void **state) {
  const void *const null = NULL;
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    struct tensor_call c = tensor_call_right(op);
    struct tensor_argument all[ARGUMENTS_MOST], *last = NULL;
    const int count = tensor_operator_arguments(op, all);
    for (int i = 0; i < count; i++)
      if (all[i].kind != IS_NUMBER) {
        (void)replace(&c, &all[i], &destroyed[all[i].kind]);
        last = &all[i];
      }
    if (last == &all[0]) continue;
    (void)replace(&c, last, &null);
    tensor_refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required",
                   last->name);
  }
}

static void the_results_need_room(void **state) {
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    const struct tensor_call c = tensor_call_right(op);
    struct tensor_arguments made;
    uint64_t size = 77;
    aclOpExecutor *executor = NULL;
    tensor_call_make(&c, &made);
    FAILS(tensor_call_first(&c, &made, &size, NULL), ACLNN_ERR_PARAM_NULLPTR,
          tensor_operators[op].first_name, ": executor is NULL");
    FAILS(tensor_call_first(&c, &made, NULL, &executor), ACLNN_ERR_PARAM_NULLPTR,
          tensor_operators[op].first_name, ": workspaceSize is NULL");
    assert_int_equal(size, 77);
    assert_null(executor);
    tensor_call_drop(&c, &made);
  }
}

static void handles_of_other_kinds_are_refused(void **state) {
  (void)state;
  static const char *const wanted[] = {[IS_TENSOR] = "aclTensor",
                                       [IS_SCALAR] = "aclScalar",
                                       [IS_ARRAY] = "aclIntArray",
                                       [IS_LIST] = "aclTensorList"};
  const void *const float_array = aclCreateFloatArray(NULL, 0), *const nonsense = &wanted;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    struct tensor_argument all[ARGUMENTS_MOST];
    const int count = tensor_operator_arguments(op, all);
    for (int i = 0; i < count; i++) {
      struct tensor_call c = tensor_call_right(op);
      if (!replace(&c, &all[i], &float_array)) continue;
      tensor_refused(&c, ACLNN_ERR_PARAM_INVALID, "%s is a float array, a live %s is required",
                     all[i].name, wanted[all[i].kind]);
      (void)replace(&c, &all[i], &nonsense);
      tensor_refused(&c, ACLNN_ERR_PARAM_INVALID, "%s is not a handle, a live %s is required",
                     all[i].name, wanted[all[i].kind]);
    }
  }
  OK_OR_SAY(aclDestroyFloatArray(float_array));
}

static void executors_belong_to_their_operator(void **state) {
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    const enum tensor_operator_id other = (op + 1) % TENSOR_OPERATORS;
    const struct tensor_call c = tensor_call_right(op);
    aclOpExecutor *executor = tensor_planned(&c, NULL);
    FAILS(tensor_operators[other].second(NULL, 0, executor, NULL), ACLNN_ERR_PARAM_INVALID,
          tensor_operators[other].second_name, tensor_operators[op].first_name,
          tensor_operators[other].first_name, "it must come from");
    OK_OR_SAY(aclDestroyAclOpExecutor(executor));
    FAILS(tensor_operators[op].second(NULL, 0, executor, NULL), ACLNN_ERR_INNER,
          "executor is a spent or destroyed executor, a live one is required");
    FAILS(tensor_operators[op].second(NULL, 0, NULL, NULL), ACLNN_ERR_PARAM_NULLPTR,
          tensor_operators[op].second_name, "executor is NULL");
  }
}

static void tensors_need_addresses(void **state) {
  (void)state;
  for (enum tensor_operator_id op = 0; op < TENSOR_OPERATORS; op++) {
    const struct tensor_call c = tensor_call_right(op);
    uint64_t size;
    aclOpExecutor *executor = tensor_planned(&c, &size);
    void *workspace = size > 0 ? device_memory(size) : NULL;
    FAILS(tensor_operators[op].second(workspace, size, executor, NULL), ACLNN_ERR_PARAM_NULLPTR,
          tensor_operators[op].second_name, "the data address of ", " is NULL");
    if (workspace != NULL) OK_OR_SAY(aclrtFree(workspace));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_right_calls_are_accepted),
      cmocka_unit_test(nulls_are_refused_in_order),
      cmocka_unit_test(a_null_wins_over_a_dead_handle),
      cmocka_unit_test(the_results_need_room),
      cmocka_unit_test(handles_of_other_kinds_are_refused),
      cmocka_unit_test(mistakes_are_refused_in_order),
      cmocka_unit_test(executors_belong_to_their_operator),
      cmocka_unit_test(tensors_need_addresses),
  };
  return cmocka_run_group_tests(tests, make_destroyed, tear_down_device);
}
