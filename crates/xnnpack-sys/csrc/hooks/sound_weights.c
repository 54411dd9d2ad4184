// Validates what packed weights tell microkernels beside weights. They may come from a file, of which nothing but the length is known.
//
// Without AVX512-VNNI and VBMI, 8-bit weights are followed by an order of steps (`ukernels/gemm_q8_bytes.h`), and without AVX512F sparse
// fp32 weights by their places (`ukernels/gemm_f32_sparse.h`). Both are added to addresses. Other packed weights contain numbers alone.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/operators.h"
#include "hooks/run.h"
#include "xnnpack/math.h"
#include "xnnpack/operator-type.h"
#include "xnnpack/operator-utils.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

// Bytes of a channel's bias and scales among packed weights that may have an order, and 0 for other operators.
static size_t constants_of(enum xnn_operator_type type) {
  switch (type) {
    case xnn_operator_type_convolution_nhwc_qu8:
    case xnn_operator_type_fully_connected_nc_qu8:
      return sizeof(int32_t);
    case xnn_operator_type_convolution_nhwc_qc8:
    case xnn_operator_type_convolution_nhwc_qs8:
    case xnn_operator_type_fully_connected_nc_qs8:
    case xnn_operator_type_fully_connected_nc_qs8_qc8w:
      return sizeof(int32_t) + sizeof(float);
    case xnn_operator_type_convolution_nhwc_qd8_f32_qc8w:
    case xnn_operator_type_fully_connected_nc_qd8_f32_qc8w:
      return sizeof(int32_t) + 2 * sizeof(float);
    default:
      return 0;
  }
}

static bool is_sound(struct xnn_operator* op) {
  if (op->type == xnn_operator_type_fully_connected_nc_f32) {
    const struct xnn_ukernel_gemm* gemm = &op->ukernel.gemm;
    return xnnpack_sys_are_all_places_sound(
        gemm->nr, gemm->kr, op->group_output_channels, op->group_input_channels, packed_weights(op));
  }
  const bool is_gemm = op->ukernel.type == xnn_microkernel_type_gemm;
  const size_t constants = constants_of(op->type);
  if (constants == 0 || (!is_gemm && op->ukernel.type != xnn_microkernel_type_igemm)) {
    return true;
  }
  const size_t nr = is_gemm ? op->ukernel.gemm.nr : op->ukernel.igemm.nr;
  const size_t kr = is_gemm ? op->ukernel.gemm.kr : op->ukernel.igemm.kr;
  const size_t positions = is_gemm ? 1 : (size_t) op->kernel_height * op->kernel_width;
  const size_t depth = positions * round_up_po2(op->group_input_channels, kr);
  const size_t stride = nr * (constants + depth + xnnpack_sys_order_of_channel(nr, kr, depth));
  // Fully connected layers have no groups.
  const size_t tiles = max(op->groups, 1) * divide_round_up(op->group_output_channels, nr);
  return xnnpack_sys_are_orders_sound(nr, kr, tiles, depth, packed_weights(op), stride);
}

bool xnnpack_sys_has_sound_weights(xnn_runtime_t runtime) {
  for (size_t i = 0; i < runtime->num_ops; i++) {
    for (size_t j = 0; j < XNN_MAX_OPERATOR_OBJECTS; j++) {
      struct xnn_operator* op = runtime->opdata[i].operator_objects[j];
      if (op != NULL && !is_sound(op)) {
        return false;
      }
    }
  }
  return true;
}
