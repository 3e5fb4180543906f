/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors that have any type, each tensor its own: here they are bytes, and
 * tensor_numbers.h says how they become numbers. */
#ifndef PG_ELEMENT_TENSOR_H_
#define PG_ELEMENT_TENSOR_H_

#include <stdint.h>

typedef uint8_t element;

#endif
