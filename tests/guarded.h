/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that knows what it should hold: a host image of every byte, guard bytes on both
 * sides, poison between the elements.  Reaches the device through copies only. */
#ifndef PG_TESTS_GUARDED_H_
#define PG_TESTS_GUARDED_H_

#include "problem.h"

struct guarded {
  size_t bytes; /* between the guards */
  char *image;  /* what was sent to the device, guards included */
  char *found;  /* what came back */
  char *device; /* the byte after the first guard; NULL before guarded_send */
  bool on_host; /* the host can reach it too */
};

/* An image of `bytes` bytes of poison between guards; false when memory is short. */
bool guarded_make(struct guarded *g, size_t bytes, int poison);

char *guarded_payload(const struct guarded *g); /* in the image */
char *guarded_found(const struct guarded *g);   /* of what came back */

/* Sends the image, guards and all; the first time allocates on the current device.  An aclError. */
int guarded_send(struct guarded *g);

/* Brings everything back.  An aclError. */
int guarded_fetch(struct guarded *g);

/* Whether image and found differ, and where: the first such byte, counted from the payload's begin.
 * Guards are compared always, the payload on demand. */
bool guarded_differs(const struct guarded *g, bool guards_only, int64_t *offset);

/* Gives the device's memory back and keeps the image, for another device. */
void guarded_leave(struct guarded *g);

void guarded_free(struct guarded *g);

/* Axes of a gradient, outermost first. */
enum { AXIS_N, AXIS_C, AXIS_D, AXIS_H, AXIS_W, POOL_AXES };

/* How one tensor of a problem lies in memory. */
struct tensor_layout {
  int rank;
  int64_t dims[POOL_AXES], strides[POOL_AXES]; /* as the view has them */
  int64_t offset, elements;                    /* elements: from the address to the last one */
  int64_t size[POOL_AXES], step[POOL_AXES];    /* by N, C, D, H, W */
  bool dense;
};

struct tensor_layout tensor_lay_out(const struct problem *p, int tensor);

int64_t tensor_cells(const struct tensor_layout *t);

/* Where the cell with this number, counted through N, C, D, H, W, lies; in elements. */
int64_t tensor_place(const struct tensor_layout *t, int64_t cell);

#endif
