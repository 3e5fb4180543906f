/* SPDX-License-Identifier: Apache-2.0 */
/* Refusing what the library asks the system for: memory, threads, files.
 *
 * Programs that include this header are linked so that the library's calls of malloc, fopen and the
 * like come here first (--wrap, the list is in CMakeLists.txt).  While armed, requests are counted
 * from 0, and the chosen one fails as the system would let it fail: with its return value and
 * errno, and without any effect.  All threads of the process are counted, so a program arms around
 * its calls into the library and not around its own work.
 *
 * What is held, by the program or the library, is counted all the time. */
#ifndef PG_TESTS_FAULTS_H_
#define PG_TESTS_FAULTS_H_

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

enum faults_mode { FAULT_ONCE, FAULT_FROM_THEN_ON };

enum faults_kind { FAULT_MEMORY, FAULT_THREAD, FAULT_FILE };

enum { FAULT_NEVER = INT_MAX };

/* Chooses the request to refuse and begins to count at 0; faults_begin and faults_end bound the
 * stretches in which requests count. */
void faults_plan(int nth, enum faults_mode mode);
void faults_begin(void);
void faults_end(void);

/* Both in one: refuses the nth request from now on. */
void faults_arm(int nth, enum faults_mode mode);
static inline void faults_disarm(void) { faults_end(); }

/* Since the plan: how many requests were counted, and how many refused. */
int faults_requests(void);
int faults_refusals(void);

/* Since the latest faults_begin: the kinds that were refused, a bit each. */
unsigned faults_refused_kinds(void);

/* What is held at the moment. */
struct faults_held {
  int blocks, maps, files, threads;
};
struct faults_held faults_held(void);

/* A moment to look back to, and the blocks held now that came after it: their sizes on a line. */
unsigned long faults_moment(void);
void faults_print_blocks(FILE *out, unsigned long since);

#endif
