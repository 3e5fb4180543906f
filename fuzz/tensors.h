/* SPDX-License-Identifier: Apache-2.0 */
/* A call of an operator on tensors of any shape, as bytes decode to it, and the memory that it is
 * run in. */
#ifndef PG_FUZZ_TENSORS_H_
#define PG_FUZZ_TENSORS_H_

#include "guarded.h"
#include "input.h"
#include "tensor_call.h"

/* SAME: the handle of the argument before it. */
enum handle_kind { LIVE, SAME, ABSENT, STALE, OTHER_KIND, NONSENSE, HANDLE_KINDS };

/* What is wrong with the second phase alone. */
enum trouble {
  NO_TROUBLE,
  NO_ADDRESS,     /* of an operand */
  ODD_ADDRESS,    /* not aligned */
  SHORT_MEMORY,   /* the operand reaches over the end of its allocation */
  BAD_WORKSPACE,  /* too small, or NULL */
  STALE_STREAM,   /* destroyed */
  OTHER_OPERATOR, /* the executor is another one's */
  NO_EXECUTOR,    /* NULL, or spent */
  TROUBLES
};

/* An argument that is a tensor, or a list of them. */
struct operand {
  bool is_list, is_written;
  int count; /* of members; a tensor has one, itself */
  struct called_tensor member[LIST_MOST];
  enum handle_kind handle;
  int dead;        /* the member whose handle is stale; -1: none */
  int home;        /* the operand in whose memory it lies, which may be itself */
  int64_t shift;   /* how many elements behind the begin of that */
  bool is_stacked; /* members begin at one address */
};

struct fuzzed_call {
  struct tensor_call call; /* its tensors and lists are those of the operands */
  int operands;
  struct operand operand[TENSORS_MOST];
  enum handle_kind scalar_handle[SCALARS_MOST], array_handle[ARRAYS_MOST];
  bool no_size, no_executor;
  uintptr_t nowhere; /* address of all data where nothing is run */
  /* how it is run */
  bool is_late, is_released, many_threads, past_caches, errors;
  bool raw_bits; /* elements are any bits at all */
  enum trouble trouble;
  int troubled; /* the operand */
  uint64_t seed;
};

void fuzzed_decode(struct input *in, struct fuzzed_call *f);
void fuzzed_print(const struct fuzzed_call *f); /* to stderr */

/* Strides as the library will see them. */
void fuzzed_strides(const struct called_tensor *t, int64_t strides[CALL_RANK_MOST]);

/* Has it a list among its arguments, and do operands lie in one memory? */
bool fuzzed_has_lists(const struct fuzzed_call *f);
bool fuzzed_shares(const struct fuzzed_call *f);

/* Does a result lie in one memory with another operand, or with another tensor of its list? */
bool fuzzed_may_overlap(const struct fuzzed_call *f);

/* Is an accepted call small enough to be run? */
bool fuzzed_is_small(const struct fuzzed_call *f);

/* --- Memory --- */

/* Each home has just the bytes that the views in it span, between guards. */
struct stage {
  const struct fuzzed_call *f;
  bool is_apart; /* every operand is at home, and no handle is passed twice */
  struct guarded memory[TENSORS_MOST];
  bool *may_change[TENSORS_MOST];      /* for each byte: is it of an element of what is written? */
  int64_t at[TENSORS_MOST][LIST_MOST]; /* where members begin in their home */
  char *right[TENSORS_MOST];           /* what the first run has left; NULL before */
};

/* An accepted, small call; elements are drawn from its seed. */
void stage_open(struct stage *s, const struct fuzzed_call *f);

/* The same with every operand in memory of its own, which has the same bytes. */
void stage_open_apart(struct stage *s, const struct stage *from);

void stage_send(struct stage *s); /* to the current device */
void stage_leave(struct stage *s);
void stage_close(struct stage *s);

void *stage_address(const struct stage *s, int operand, int member);

/* Brings everything back.  Nothing may have changed but what may, or nothing at all. */
void stage_fetch(struct stage *s, bool has_run);

/* Compares what is written with what the first run has left; the first time notes that. */
void stage_compare(struct stage *s);

/* Compares what the first run has left with what the other one's latest has. */
void stage_compare_apart(const struct stage *s, const struct stage *apart);

/* --- Handles --- */

/* The handles of one call, and what it gives. */
struct made {
  struct tensor_call call;
  struct tensor_arguments arguments;
  aclTensorList *list[TENSORS_MOST];
  const void *wrong[3][TENSORS_MOST]; /* of tensors, scalars and arrays */
  uint64_t size;
  aclOpExecutor *executor;
};
enum { NOT_TOUCHED = 0x5a }; /* what size and executor are before the first phase */

/* s: where the data is; NULL: nowhere, since nothing will be run. */
void made_open(struct made *m, const struct fuzzed_call *f, const struct stage *s);

/* Destroys what was made, if that has not happened before; the executor stays. */
void made_drop(struct made *m);

/* The call that is being made comes before what is wrong with it. */
extern struct fuzzed_call current;
#define wrong(...) (fuzzed_print(&current), wrong(__VA_ARGS__))

static inline const char *sentence(void) {
  const char *text = aclGetRecentErrMsg();
  return text == NULL ? "(no sentence)" : text;
}

#define NEED(call)                                                         \
  do {                                                                     \
    const int status_ = (call);                                            \
    if (status_ != 0) wrong("%s gave %d: %s", #call, status_, sentence()); \
  } while (0)

#endif
