/* SPDX-License-Identifier: Apache-2.0 */
/* A problem with its data on a device: run it through the public API, as often and on as many
 * devices as wanted, and compare what came out with the reference and with each other. */
#ifndef PG_TESTS_TRIAL_H_
#define PG_TESTS_TRIAL_H_

#include "operator_call.h"

enum { TRIAL_DEVICES = 8 };

/* The devices of the process: a context and a stream on each. */
struct trial_devices {
  int count;
  struct {
    char backend[16]; /* "cpu" or "cuda" */
    aclrtContext context;
    aclrtStream stream;
  } at[TRIAL_DEVICES];
};

struct trial {
  const struct trial_devices *devices;
  int device; /* where the data is */
  struct problem problem;
  int method;   /* the number of the method to use, among those that fit */
  bool too_few; /* a launch failed because fewer fit */
  struct reference_pooling pool;
  struct tensor_layout layout[POOL_TENSORS];
  struct guarded memory[POOL_TENSORS], workspace;
  /* dense, in the order N, C, D, H, W */
  double *x;        /* what a forward reads, or what the one saw that a backward's indices are of */
  double *grad_out; /* of a backward: as the device has it */
  int64_t *index;   /* as the device has it; of a forward after trial_fetch */
  double *result;   /* after trial_fetch: the cells of gradInput, or the outputs of a forward */
  char *bits;       /* the same as elements */
  char *right;      /* the first of those, once they were compared with the reference */
  int64_t *right_index;
  int64_t outputs, cells, results;
  bool bad_index_reported; /* the latest run failed because of indices outside their plane */
  int64_t reported;        /* how many the message counted */
  int64_t dropped;         /* how many there are, as the reference counts */
  char why[PROBLEM_TEXT];
};

/* Enters every device; the first one is current then, as it was before.  Close what was opened. */
bool trial_devices_open(struct trial_devices *devices);
bool trial_devices_close(struct trial_devices *devices);

/* Makes the data and sends it to the first device.  False leaves a sentence in why; close the trial
 * all the same. */
bool trial_open(struct trial *t, const struct problem *p, const struct trial_devices *devices);

/* The same data on another device, which becomes the current one. */
bool trial_move(struct trial *t, int device);

/* Both phases, and that they and a synchronise.  Descriptions are destroyed before the work is
 * waited for.  A workspace is made by the first of them. */
bool trial_enqueue(struct trial *t);
bool trial_launch(struct trial *t);

/* The parts of trial_enqueue, for who looks at every call: descriptions, and the two phases. */
struct trial_call {
  aclTensor *tensor[POOL_TENSORS];
  aclIntArray *array[POOL_ARRAYS];
  uint64_t workspace_size;
  aclOpExecutor *executor;
};
aclTensor *trial_make_tensor(const struct trial *t, int tensor);
aclIntArray *trial_make_array(const struct trial *t, int array); /* NULL where the line says so */
aclnnStatus trial_first_phase(const struct trial *t, struct trial_call *c);
aclnnStatus trial_second_phase(const struct trial *t, const struct trial_call *c, void *workspace,
                               aclrtStream stream);

/* Poison in what the operator writes again, for another launch. */
bool trial_reset(struct trial *t);

/* Brings everything back, fills result, and checks all memory that must not have changed. */
bool trial_fetch(struct trial *t);

/* Compares the result with the reference.
 *
 * A result must lie between the roundings of sum - e and sum + e, where sum is the fp64 reference
 * and e bounds what fp32 (DOUBLE: fp64) can lose: (terms + 2) * 2^-24 * sum of absolute terms.  e
 * is 0 where nothing can be lost: integers, and a lone term, which is rounded once to fp32 and once
 * to its type.  NaN and infinities must be as the reference has them; zeros are +0, except for
 * negative sums that a half type cannot hold.  Then the bits: what single precision gives in the
 * one order of summation (ordered_sums.h).  Forward averages likewise, unless fp32 cannot hold
 * their sums: then only the bits count.  Maxima have the bits of the cell that counts, and its
 * position. Once a result was right, later ones must have its bits, a NaN's payload aside. */
bool trial_compare(struct trial *t);

/* The first device is current again. */
void trial_close(struct trial *t);

/* Changes the method; the workspace is then another. */
void trial_set_method(struct trial *t, int method);

/* All of it on every device, once by each method that fits there, or by the one that the problem
 * names.  False leaves a sentence in `why`. */
bool trial_run(const struct problem *p, const struct trial_devices *devices,
               char why[PROBLEM_TEXT]);

/* The place of a tensor's element in the order N, C, D, H, W, in bytes from its address; an index
 * of a mask counts as an element. */
int64_t trial_place(const struct trial *t, int tensor, int64_t element);

/* How many elements of the tensor the operator reads or writes: outputs or cells. */
int64_t trial_count(const struct trial *t, int tensor);

/* One index as the tensor has it. */
int64_t trial_decode_index(const struct trial *t, const char *from);

/* Used by trial_open: x, grad_out and index, and their images. */
void trial_fill(struct trial *t);

/* The dense elements of what a forward reads. */
void trial_gather(const struct trial *t, char *elements);

#endif
