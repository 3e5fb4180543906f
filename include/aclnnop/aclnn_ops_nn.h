/* SPDX-License-Identifier: Apache-2.0 */

/* Umbrella of the pooling operators. Each has a header of its own in this folder; including this
 * one brings them all. The operators on tensors of any shape are included one by one. */

#ifndef PG_ACLNN_OPS_NN_H_
#define PG_ACLNN_OPS_NN_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_adaptive_avg_pool2d.h"
#include "aclnn_adaptive_avg_pool2d_backward.h"
#include "aclnn_adaptive_avg_pool3d.h"
#include "aclnn_adaptive_avg_pool3d_backward.h"
#include "aclnn_adaptive_max_pool2d.h"
#include "aclnn_adaptive_max_pool2d_backward.h"
#include "aclnn_adaptive_max_pool3d.h"
#include "aclnn_adaptive_max_pool3d_backward.h"
#include "aclnn_avgpool2d.h"
#include "aclnn_avgpool2d_backward.h"
#include "aclnn_avgpool3d.h"
#include "aclnn_avgpool3d_backward.h"
#include "aclnn_max_pool.h"
#include "aclnn_max_pool2d_with_indices.h"
#include "aclnn_max_pool2d_with_indices_backward.h"
#include "aclnn_max_pool3d_with_argmax.h"
#include "aclnn_max_pool3d_with_argmax_backward.h"
#include "aclnn_util.h"

#endif
