// Configurations that XNNPACK's operators request from this crate, by what they know of the layer: those of this crate
// where the processor can run them, XNNPACK's otherwise.

#ifndef XNNPACK_SYS_OPERATORS_H
#define XNNPACK_SYS_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukernels/linear_x8.h"
#include "ukernels/pool_images_api.h"
#include "xnnpack.h"
#include "xnnpack/common.h"
#include "xnnpack/config.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams.h"
#include "xnnpack/operator-type.h"

// How TFLite's reference kernels bring sums to the output's scale.
struct xnnpack_sys_rescaling {
  double scale;
  // How often they round: once, or twice (`fixed_point.h`).
  int rounds;
};

static XNN_INLINE struct xnnpack_sys_rescaling xnnpack_sys_convolution_rescaling(
    float input_scale, float kernel_scale, float output_scale)
{
  return (struct xnnpack_sys_rescaling) {
      .scale = (double) (input_scale * kernel_scale) / (double) output_scale, .rounds = 2};
}

static XNN_INLINE struct xnnpack_sys_rescaling xnnpack_sys_rows_rescaling(
    float input_scale, float kernel_scale, float output_scale)
{
  return (struct xnnpack_sys_rescaling) {
      .scale = (double) input_scale * (double) kernel_scale / (double) output_scale, .rounds = 1};
}

// Calls `init`, a configuration's function. If it is a function of this crate, `rescaling` replaces `scale`, which XNNPACK
// computes in single precision.
void xnnpack_sys_init_qu8_params(
    xnn_init_qu8_conv_minmax_params_fn init, struct xnnpack_sys_rescaling rescaling,
    union xnn_qu8_conv_minmax_params* params, uint8_t kernel_zero_point, float scale, uint8_t output_zero_point,
    uint8_t output_min, uint8_t output_max);

// Convolutions with a number of inputs at a position of the kernel, of output channels in a group, and of positions.
const struct xnn_gemm_config* xnnpack_sys_conv_f32_gemm_config_for(size_t inputs, size_t channels);
const struct xnn_gemm_config* xnnpack_sys_qu8_gemm_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config_for(size_t outputs, size_t positions, size_t inputs);

// Returns `config`, or, if it adds two products in 16 bits and one of the int8 weights is -128, a configuration that does not. For uint8: if
// two weights are 0 whose products it adds; `inputs` are a channel's weights at a position.
const struct xnn_gemm_config* xnnpack_sys_exact_qu8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights, size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_exact_qs8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights);
const struct xnn_gemm_config* xnnpack_sys_exact_qd8_gemm_config_for(
    const struct xnn_gemm_config* config, const void* kernel, size_t weights);
const struct xnn_dwconv_config* xnnpack_sys_exact_depthwise_config_for(
    const struct xnn_dwconv_config* configs, const void* kernel, size_t weights);

// Layers with fewer channels than XNNPACK's tile is wide: convolutions, and others.
const struct xnn_gemm_config* xnnpack_sys_narrow_conv_f32_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config(void);
bool xnnpack_sys_takes_narrow_tile(
    const struct xnn_gemm_config* narrow, const struct xnn_gemm_config* wide, size_t channels);

// Convolutions of images quantized at run time, with a number of inputs at a position and of output channels in a group; removes
// `XNNPACK_SYS_UNSIGNED_IMAGES` from the flags.
const struct xnn_gemm_config* xnnpack_sys_image_gemm_config_for(size_t inputs, size_t outputs, uint32_t* flags);

// Depthwise convolutions. That of fp32 takes the stride and the dilation along a row, those with `for` the weights of a channel. That
// of int8 removes `XNNPACK_SYS_QD8_DEPTHWISE` from the flags. The exact one supports weights of -128.
enum { XNNPACKS_F32_DEPTHWISE_CONFIGS = XNN_MAX_F32_DWCONV_UKERNELS, LARGE_F32_DEPTHWISE_CONFIGS = 5 };
#define XNNPACK_SYS_F32_DEPTHWISE_CONFIGS (XNNPACKS_F32_DEPTHWISE_CONFIGS + LARGE_F32_DEPTHWISE_CONFIGS)
const struct xnn_dwconv_config* xnnpack_sys_f32_depthwise_config(size_t stride, size_t dilation);
const struct xnn_dwconv_config* xnnpack_sys_int8_depthwise_config_for(size_t weights, uint32_t* flags);
const struct xnn_dwconv_config* xnnpack_sys_qs8_depthwise_config(void);
const struct xnn_dwconv_config* xnnpack_sys_exact_qd8_depthwise_config(void);
const struct xnn_dwconv_config* xnnpack_sys_qu8_depthwise_config(void);
const struct xnn_dwconv_config* xnnpack_sys_qs8_depthwise_config_for(size_t weights);
const struct xnn_dwconv_config* xnnpack_sys_qu8_depthwise_config_for(size_t weights);

// Bytes for each channel that are appended to packed weights of a layer with `depth` weights for a channel; 0 for most tiles.
size_t xnnpack_sys_order_of_channel(size_t nr, size_t kr, size_t depth);

// Whether what was appended to the weights of each tile, which begin `stride` bytes apart, names only inputs that the layer has.
bool xnnpack_sys_are_orders_sound(size_t nr, size_t kr, size_t tiles, size_t depth, const void* packed, size_t stride);

// Both for sparse fp32 weights of fully connected layers, to which the places of weights are appended.
size_t xnnpack_sys_places_of_channel(size_t nr, size_t kr, size_t depth);
bool xnnpack_sys_are_all_places_sound(size_t nr, size_t kr, size_t channels, size_t depth, const void* packed);

// Rows that the microkernel for a tile of a fully connected layer computes at once: `mr`, or fewer if tiles can all be full so.
uint32_t xnnpack_sys_rows_of_tile(uint32_t mr, uint32_t nr, size_t rows);

// Transposed convolutions with a number of channels in a group.
const struct xnn_gemm_config* xnnpack_sys_transposed_qu8_gemm_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_transposed_f32_gemm_config_for(bool strided, size_t inputs, size_t outputs);

// Fully connected layers. That of fp32 removes `XNNPACK_SYS_HALF_WEIGHTS` and `XNNPACK_SYS_SPARSE_WEIGHTS` from the flags, those of
// integers with a scale for each channel `XNNPACK_SYS_MANY_ROWS`.
const struct xnn_gemm_config* xnnpack_sys_fully_connected_f32_gemm_config(size_t inputs, uint32_t* flags);
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config_for(size_t inputs, size_t channels);
// NULL if weights of 0 are not skipped.
const struct xnn_gemm_config* xnnpack_sys_f32_sparse_gemm_config_for(size_t inputs);
const struct xnn_gemm_config* xnnpack_sys_qu8_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags);
const struct xnn_gemm_config* xnnpack_sys_qs8_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags);
const struct xnn_gemm_config* xnnpack_sys_qd8_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags);
const struct xnn_gemm_config* xnnpack_sys_qd8_qc4w_rows_gemm_config(size_t inputs, size_t outputs, uint32_t* flags);
const struct xnn_gemm_config* xnnpack_sys_qd8_qc4w_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_qb4w_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_qb4w_gemm_config(void);

// Convolutions, transposed ones and matrix products whatever their shape.
const struct xnn_gemm_config* xnnpack_sys_f32_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_f32_pairs_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_f32_wide_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_f32_joined_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_f32_rows_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_matrix_f32_gemm_config(void);
xnn_packw_gemm_gio_ukernel_fn xnnpack_sys_matrix_f32_pack_gio(void);
const struct xnn_gemm_config* xnnpack_sys_f32_f16w_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_qu8_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_qu8_amx_config(void);
const struct xnn_gemm_config* xnnpack_sys_qs8_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_qs8_amx_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_qc8w_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_qc8w_igemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_qdu8_qc8w_igemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_amx_config(void);
const struct xnn_gemm_config* xnnpack_sys_qd8_qc4w_amx_config(void);

// Transpositions.
const struct xnn_transpose_config* xnnpack_sys_transpose_config(void);

// Pooling, interpolation and means.
const struct xnn_argmaxpool_config* xnnpack_sys_f32_argmaxpool_config(void);
const struct xnn_avgpool_config* xnnpack_sys_f32_avgpool_config(void);
const struct xnn_pavgpool_config* xnnpack_sys_f32_pavgpool_config(void);
const struct xnn_ibilinear_config* xnnpack_sys_f32_ibilinear_config(void);
const struct xnn_ibilinear_config* xnnpack_sys_s8_ibilinear_config(void);
const struct xnn_ibilinear_config* xnnpack_sys_u8_ibilinear_config(void);
// Microkernels of bilinear interpolation along one axis after the other, or NULL.
const struct xnnpack_sys_resize_rows* xnnpack_sys_resize_rows_config(enum xnn_operator_type type);
const struct xnn_maxpool_config* xnnpack_sys_f32_maxpool_config(void);
const struct xnn_maxpool_config* xnnpack_sys_s8_maxpool_config(void);
const struct xnn_maxpool_config* xnnpack_sys_u8_maxpool_config(void);
// The microkernel of a maximum pooling for windows that are whole images, or of their negative elements, or NULL.
xnnpack_sys_image_max_fn xnnpack_sys_image_max_function(
    enum xnn_operator_type type, size_t channels, bool of_negative);
const struct xnn_reduce_config* xnnpack_sys_f32_mean_config(void);
const struct xnn_reduce_config* xnnpack_sys_qs8_sum_config(void);
const struct xnn_reduce_config* xnnpack_sys_qs8_sum_columns_config(void);
const struct xnn_reduce_config* xnnpack_sys_qu8_sum_columns_config(void);
const struct xnn_reduce_config* xnnpack_sys_f32_range_config(void);

// Functions of one and two operands.
const struct xnn_binary_elementwise_config* xnnpack_sys_f32_vmax_config(void);
const struct xnn_binary_elementwise_config* xnnpack_sys_f32_vmin_config(void);
const struct xnn_binary_elementwise_config* xnnpack_sys_qu8_add_config(void);
const struct xnn_binary_elementwise_config* xnnpack_sys_qs8_add_config(void);
const struct xnn_binary_elementwise_config* xnnpack_sys_qs8_multiply_config(void);
const struct xnn_binary_elementwise_config* xnnpack_sys_qu8_multiply_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_exp_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_log_config(void);
// GELU with tanh, or NULL.
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_gelu_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_rsqrt_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_sigmoid_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_sqrt_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_f32_to_s32_config(void);
const struct xnn_unary_elementwise_config* xnnpack_sys_qu8_convert_config(void);
// Nothing where a table is faster than to convert each element.
const struct xnn_unary_elementwise_config* xnnpack_sys_qu8_direct_convert_config(void);

// The microkernel for a function of bytes by its table of XNNPACK_SYS_TABLE_BYTES.
const struct xnn_x8_lut_config* xnnpack_sys_table_config(uint8_t* table);

// Functions of one operand for which XNNPACK has no microkernel. It makes tables of those of 8-bit integers.
const struct xnn_unary_elementwise_config* xnnpack_sys_unary_reference_config(
    enum xnn_unary_operator op, enum xnn_datatype input, enum xnn_datatype output);

// Functions of two operands for which XNNPACK has no microkernel, by the quantization of 8-bit tensors.
const struct xnn_binary_elementwise_config* xnnpack_sys_binary_reference_config(
    enum xnn_binary_operator op, enum xnn_datatype datatype, const struct xnn_quantization_params* a,
    const struct xnn_quantization_params* b, const struct xnn_quantization_params* output);

#endif
