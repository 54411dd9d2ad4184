// Microkernels in place of XNNPACK's reference kernels, which compute elements one by one, see `operators.h`.

#include "config/operators.h"

#include <stddef.h>

#include "xnnpack/reference-config.h"

const struct xnn_unary_elementwise_config* xnnpack_sys_unary_reference_config(
    enum xnn_unary_operator op, enum xnn_datatype input, enum xnn_datatype output)
{
  if (op == xnn_unary_convert && input == xnn_datatype_fp32 && output == xnn_datatype_int32) {
    return xnnpack_sys_f32_to_s32_config();
  }
  if (op == xnn_unary_convert && input == xnn_datatype_quint8 && output == xnn_datatype_quint8) {
    return xnnpack_sys_qu8_convert_config();
  }
  return xnn_init_unary_reference_config(op, input, output);
}
