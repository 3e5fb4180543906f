/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type UINT8, which are compared and never summed. */
#ifndef PG_ELEMENT_U8_H_
#define PG_ELEMENT_U8_H_

#include <stdbool.h>
#include <stdint.h>

typedef uint8_t element;
typedef uint8_t sum_type;

static inline sum_type widen_one(element x) { return x; }
static inline bool is_nan(sum_type x) { return (void)x, false; }

#endif
