// A load for microkernels with matrix products (i8mm), which GCC would translate with detours through memory.

#ifndef XNNPACK_SYS_LANES_NEON_H
#define XNNPACK_SYS_LANES_NEON_H

#include <arm_neon.h>

#include "xnnpack/common.h"

// Equals `vld2q_lane_u64`: the first of two elements goes to a lane of the first vector, the second to that of the second vector.
static XNN_INLINE uint64x2x2_t xnnpack_sys_load_lanes(const void* from, uint64x2x2_t to, int lane) {
  const uint64x2_t pair = vld1q_u64((const uint64_t*) from);
  return (uint64x2x2_t) {{
      lane == 0 ? vcopyq_laneq_u64(to.val[0], 0, pair, 0) : vcopyq_laneq_u64(to.val[0], 1, pair, 0),
      lane == 0 ? vcopyq_laneq_u64(to.val[1], 0, pair, 1) : vcopyq_laneq_u64(to.val[1], 1, pair, 1),
  }};
}

#endif
