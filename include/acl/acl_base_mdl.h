/* SPDX-License-Identifier: Apache-2.0 */

/* Tensor descriptions of the model interface. poolgrad has no models, so this file declares
 * nothing; it exists for programs that include it by name. */

#ifndef PG_ACL_BASE_MDL_H_
#define PG_ACL_BASE_MDL_H_

#endif
