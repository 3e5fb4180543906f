/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type UINT16, which are compared and never summed. */
#ifndef PG_ELEMENT_U16_H_
#define PG_ELEMENT_U16_H_

#include <stdbool.h>
#include <stdint.h>

typedef uint16_t element;
typedef uint16_t sum_type;

static inline sum_type widen_one(element x) { return x; }
static inline bool is_nan(sum_type x) { return (void)x, false; }

#endif
