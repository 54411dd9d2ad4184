// Microkernels in place of XNNPACK's reference kernels, which compute elements one by one, see `operators.h`.

#include "config/config.h"

#include <stddef.h>

#include "ukernels/choice_q8.h"
#include "ukernels/gelu_f32.h"
#include "ukernels/sign_f32.h"
#include "ukernels/sine_f32.h"
#include "xnnpack/reference-config.h"

#define UNARY_CONFIG(name, isa) \
  static const struct xnn_unary_elementwise_config name##_##isa = { \
      .ukernel = (xnn_vunary_ukernel_fn) xnnpack_sys_f32_v##name##_ukernel__##isa}
#define SINES(isa) \
  UNARY_CONFIG(sin, isa); \
  UNARY_CONFIG(cos, isa)

UNARY_CONFIG(sign, vector);
SINES(vector);

#if XNN_ARCH_X86_64
SINES(avx);
SINES(avx2);
UNARY_CONFIG(gelu, sse41);
UNARY_CONFIG(gelu, avx);
UNARY_CONFIG(gelu, avx2);
#if AVX512F
SINES(avx512f);
UNARY_CONFIG(gelu, avx512f);
#endif

#define SINE(name) \
  WITH_AVX512F( \
      &name##_avx512f, (has_avx2() ? &name##_avx2 : has_avx() ? &name##_avx : &name##_vector))
#else
#define SINE(name) &name##_vector
#endif

const struct xnn_unary_elementwise_config* xnnpack_sys_f32_gelu_config(void) {
#if XNN_ARCH_X86_64
  return WITH_AVX512F(
      &gelu_avx512f, (has_avx2() ? &gelu_avx2 : has_avx() ? &gelu_avx : has_sse41() ? &gelu_sse41 : NULL));
#else
  return NULL;
#endif
}

// Microkernels of floats, or NULL.
static const struct xnn_unary_elementwise_config* f32_config(enum xnn_unary_operator op) {
  switch (op) {
    case xnn_unary_cosine: return SINE(cos);
    case xnn_unary_sign: return &sign_vector;
    case xnn_unary_sine: return SINE(sin);
    default: return NULL;
  }
}

const struct xnn_unary_elementwise_config* xnnpack_sys_unary_reference_config(
    enum xnn_unary_operator op, enum xnn_datatype input, enum xnn_datatype output)
{
  if (op == xnn_unary_convert && input == xnn_datatype_fp32 && output == xnn_datatype_int32) {
    return xnnpack_sys_f32_to_s32_config();
  }
  if (op == xnn_unary_convert && input == xnn_datatype_quint8 && output == xnn_datatype_quint8) {
    return xnnpack_sys_qu8_convert_config();
  }
  if (input == xnn_datatype_fp32 && output == xnn_datatype_fp32) {
    const struct xnn_unary_elementwise_config* config = f32_config(op);
    if (config != NULL) {
      return config;
    }
  }
  return xnn_init_unary_reference_config(op, input, output);
}

// Configurations of maxima and minima.
enum { OF_INT8, OF_UINT8, TYPES };

#define CHOICE_OF(name, isa) \
  { \
    .op_ukernel = xnnpack_sys_##name##_ukernel__##isa, \
    .opc_ukernel = xnnpack_sys_##name##c_ukernel__##isa, \
    .ropc_ukernel = xnnpack_sys_##name##c_ukernel__##isa, \
    .element_tile = 64, \
  }

struct choices {
  struct xnn_binary_elementwise_config maxima[TYPES];
  struct xnn_binary_elementwise_config minima[TYPES];
};

#define CHOICES(isa) \
  static const struct choices choices_##isa = { \
      .maxima = {[OF_INT8] = CHOICE_OF(s8_vmax, isa), [OF_UINT8] = CHOICE_OF(u8_vmax, isa)}, \
      .minima = {[OF_INT8] = CHOICE_OF(s8_vmin, isa), [OF_UINT8] = CHOICE_OF(u8_vmin, isa)}, \
  };

CHOICES(vector)

#if XNN_ARCH_X86_64
CHOICES(sse41)
CHOICES(avx2)

static const struct choices* choices(void) {
  return has_avx2() ? &choices_avx2 : has_sse41() ? &choices_sse41 : &choices_vector;
}
#else
static const struct choices* choices(void) { return &choices_vector; }
#endif

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
    return (op == xnn_binary_maximum ? choices()->maxima : choices()->minima) + (is_int8 ? OF_INT8 : OF_UINT8);
  }
  return xnn_init_binary_reference_config(op, datatype);
}
