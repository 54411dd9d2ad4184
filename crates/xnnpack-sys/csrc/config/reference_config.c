// Microkernels in place of XNNPACK's reference kernels, which compute elements one by one, see `operators.h`.

#include "config/operators.h"

#include <stddef.h>

#include "ukernels/choice_q8.h"
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

// Configurations of maxima and minima.
enum { OF_INT8, OF_UINT8, TYPES };

#define CHOICE_OF(name) \
  { \
    .op_ukernel = xnnpack_sys_##name##_ukernel__vector, \
    .opc_ukernel = xnnpack_sys_##name##c_ukernel__vector, \
    .ropc_ukernel = xnnpack_sys_##name##c_ukernel__vector, \
    .element_tile = 64, \
  }

static const struct xnn_binary_elementwise_config maxima[TYPES] = {
    [OF_INT8] = CHOICE_OF(s8_vmax),
    [OF_UINT8] = CHOICE_OF(u8_vmax),
};
static const struct xnn_binary_elementwise_config minima[TYPES] = {
    [OF_INT8] = CHOICE_OF(s8_vmin),
    [OF_UINT8] = CHOICE_OF(u8_vmin),
};

static bool are_equal(const struct xnn_quantization_params* a, const struct xnn_quantization_params* b) {
  return a->scale == b->scale && a->zero_point == b->zero_point;
}

const struct xnn_binary_elementwise_config* xnnpack_sys_binary_reference_config(
    enum xnn_binary_operator op, enum xnn_datatype datatype, const struct xnn_quantization_params* a,
    const struct xnn_quantization_params* b, const struct xnn_quantization_params* output)
{
  const bool is_int8 = datatype == xnn_datatype_qint8;
  const bool is_choice = op == xnn_binary_maximum || op == xnn_binary_minimum;
  if (is_choice && (is_int8 || datatype == xnn_datatype_quint8) && are_equal(a, output) && are_equal(b, output)) {
    return (op == xnn_binary_maximum ? maxima : minima) + (is_int8 ? OF_INT8 : OF_UINT8);
  }
  return xnn_init_binary_reference_config(op, datatype);
}
