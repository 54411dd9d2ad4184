// Layouts of XNNPACK's structures that this crate depends on beyond the names of their fields. Another revision that changes one
// of them fails to compile here.

#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/compute.h"
#include "xnnpack/memory-planner.h"
#include "xnnpack/microparams.h"
#include "xnnpack/operator.h"
#include "xnnpack/pack.h"
#include "xnnpack/subgraph.h"

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "size of " #type)
#define OFFSET(type, field, offset) _Static_assert(offsetof(type, field) == (offset), "offset of " #field " in " #type)
#define FIELD_SIZE(type, field, size) \
  _Static_assert(sizeof(((type*) NULL)->field) == (size), "size of " #field " in " #type)
#define AS_LARGE_AS(type, field, other) \
  _Static_assert(sizeof(((type*) NULL)->field) >= sizeof(other), #field " in " #type " has no room for " #other)

// Flags of this crate are the upper bits of 32 (`hooks/flags.h`).
FIELD_SIZE(struct xnn_node, flags, 4);
FIELD_SIZE(struct xnn_operator, flags, 4);
FIELD_SIZE(struct xnn_operator_data, flags, 4);

// `hooks/depthwise_qd8.c` reads values' parameters for quantization at run time as those of microkernels.
SIZE(struct xnn_quantization_params, 8);
SIZE(struct xnn_qd8_quantization_params, 8);
OFFSET(struct xnn_quantization_params, zero_point, 0);
OFFSET(struct xnn_qd8_quantization_params, zero_point, 0);
OFFSET(struct xnn_quantization_params, scale, 4);
OFFSET(struct xnn_qd8_quantization_params, inv_scale, 4);

// `config/q8_gemm_config.c` keeps a multiplier with a signed exponent, and how often to round, in parameters of uint8 products.
FIELD_SIZE(union xnn_qu8_conv_minmax_params, rndnu_scalar.multiplier, 4);
FIELD_SIZE(union xnn_qu8_conv_minmax_params, rndnu_scalar.shift, 4);
FIELD_SIZE(union xnn_qu8_conv_minmax_params, rndnu_scalar.rounding, 8);
FIELD_SIZE(union xnn_qu8_conv_minmax_params, rndnu_scalar.output_zero_point, 4);

// Operators copy parameters into contexts as bytes.
AS_LARGE_AS(struct xnn_operator, params, union xnn_qu8_conv_minmax_params);
AS_LARGE_AS(struct gemm_context, params, union xnn_qu8_conv_minmax_params);
AS_LARGE_AS(struct igemm_context, params, union xnn_qu8_conv_minmax_params);
AS_LARGE_AS(struct dwconv_context, params, union xnn_qu8_conv_minmax_params);

// `hooks/indirection.c` and `resize.c` keep structures of their own where XNNPACK keeps pointers.
FIELD_SIZE(struct xnn_operator, indirection_buffer, sizeof(void*));
FIELD_SIZE(struct igemm_context, indirect_a, sizeof(void*));
FIELD_SIZE(struct dwconv_context, indirect_input, sizeof(void*));
FIELD_SIZE(struct resize_bilinear_context, indirect_input, sizeof(void*));

// Rust's tests run on systems with 64-bit pointers.
#if UINTPTR_MAX == UINT64_MAX
// `tests/plan.rs` has these structures in Rust.
SIZE(struct xnn_usage_record, 32);
OFFSET(struct xnn_usage_record, first_node, 0);
OFFSET(struct xnn_usage_record, last_node, 4);
OFFSET(struct xnn_usage_record, tensor_size, 8);
OFFSET(struct xnn_usage_record, alloc_offset, 16);
OFFSET(struct xnn_usage_record, reuse_value_id, 24);
OFFSET(struct xnn_usage_record, opdata_id, 28);
SIZE(struct xnn_value_allocation_tracker, 32);
OFFSET(struct xnn_value_allocation_tracker, mem_arena_size, 0);
OFFSET(struct xnn_value_allocation_tracker, usage, 8);
OFFSET(struct xnn_value_allocation_tracker, min_value_id, 16);
OFFSET(struct xnn_value_allocation_tracker, max_value_id, 24);

// `tests/blocks.rs` has this structure in Rust.
SIZE(struct xnn_f32_qb4w_minmax_params, 16);
OFFSET(struct xnn_f32_qb4w_minmax_params, scalar.min, 0);
OFFSET(struct xnn_f32_qb4w_minmax_params, scalar.max, 4);
OFFSET(struct xnn_f32_qb4w_minmax_params, scalar.blocksize, 8);

// `tests/packing.rs` has one structure in Rust for both.
SIZE(struct xnn_qu8_packing_params, 2);
OFFSET(struct xnn_qu8_packing_params, input_zero_point, 0);
OFFSET(struct xnn_qu8_packing_params, kernel_zero_point, 1);
OFFSET(struct xnn_qs8_packing_params, input_zero_point, 0);
#endif
