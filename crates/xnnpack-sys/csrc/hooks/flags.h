// Bits that this crate adds to the flags of XNNPACK's nodes and operators.

#ifndef XNNPACK_SYS_FLAGS_H
#define XNNPACK_SYS_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "xnnpack.h"

// Node and operator: images that are quantized at run time have no sign. 128 is added to the quantized elements and to the zero
// points.
#define XNNPACK_SYS_UNSIGNED_IMAGES (UINT32_C(1) << 31)

// Node of a fully connected layer: the weights are exact in fp16 and are packed in fp16. `FLAG_HALF_WEIGHTS` in `src/lib.rs`.
#define XNNPACK_SYS_HALF_WEIGHTS (UINT32_C(1) << 30)

// Operator: it computes with denormals.
#define XNNPACK_SYS_KEEPS_DENORMALS (UINT32_C(1) << 29)

// Operator: it computes with denormals and the one before it does not, or the other way round.
#define XNNPACK_SYS_SWITCHES_DENORMALS (UINT32_C(1) << 28)

// Data of an operator: the operator before it computes with denormals.
#define XNNPACK_SYS_FINDS_DENORMALS (UINT32_C(1) << 27)

// Creation of an int8 convolution: it is a depthwise convolution of inputs that are quantized at run time.
#define XNNPACK_SYS_QD8_DEPTHWISE (UINT32_C(1) << 26)

// Node of a fully connected layer: the input has more rows than a few. `FLAG_MANY_ROWS` in `src/lib.rs`.
#define XNNPACK_SYS_MANY_ROWS (UINT32_C(1) << 25)

// Operator: what it would copy is already where it has to be (`memory/views.c`).
#define XNNPACK_SYS_IS_IN_PLACE (UINT32_C(1) << 24)

// Operator: it copies a few bytes, which are contiguous.
#define XNNPACK_SYS_COPIES_FEW (UINT32_C(1) << 23)

// Node of a fully connected layer: many of its fp32 weights are 0. `FLAG_SPARSE_WEIGHTS` in `src/lib.rs`.
#define XNNPACK_SYS_SPARSE_WEIGHTS (UINT32_C(1) << 22)

// Node and operator of a maximum pooling: it finds the maximum of the negative elements of its input.
#define XNNPACK_SYS_OF_NEGATIVE (UINT32_C(1) << 21)

// Removes `flag` from `flags`, because it is not one of XNNPACK's, and returns whether it was there.
static inline bool xnnpack_sys_take_flag(uint32_t* flags, uint32_t flag) {
  const bool is_set = (*flags & flag) != 0;
  *flags &= ~flag;
  return is_set;
}

// All flags of nodes and operators in xnnpack.h are below these bits. (XNN_FLAG_NO_OPERATOR_FUSION and XNN_FLAG_SLINKY_ENABLED,
// which are not, are flags of runtimes.)
#define XNNPACK_SYS_FIRST_FLAG XNNPACK_SYS_OF_NEGATIVE
_Static_assert(
    (XNN_FLAG_HINT_SPARSE_INFERENCE | XNN_FLAG_HINT_FP16_INFERENCE | XNN_FLAG_FORCE_FP16_INFERENCE |
     XNN_FLAG_BASIC_PROFILING | XNN_FLAG_JIT | XNN_FLAG_DEPTHWISE_CONVOLUTION | XNN_FLAG_TRANSPOSE_WEIGHTS |
     XNN_FLAG_INPUT_NHWC | XNN_FLAG_TENSORFLOW_SAME_PADDING | XNN_FLAG_TRANSPOSE_B | XNN_FLAG_TRANSPOSE_A |
     XNN_FLAG_TENSORFLOW_RESHAPE_2D | XNN_FLAG_TENSORFLOW_LEGACY_MODE | XNN_FLAG_FP32_STATIC_WEIGHTS |
     XNN_FLAG_ALIGN_CORNERS | XNN_FLAG_YIELD_WORKERS | XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER | XNN_FLAG_KEEP_DIMS) <
        XNNPACK_SYS_FIRST_FLAG,
    "a flag of xnnpack.h has a bit of this crate");

#endif
