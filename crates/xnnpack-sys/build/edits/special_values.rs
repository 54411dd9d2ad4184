//! NaN, infinities and denormals propagate as in TFLite's reference kernels.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[
    BOUNDS_FIRST,
    LAST_INPUTS,
    SPARE_TAPS,
    LARGEST_OF_NUMBERS,
    LARGEST_OF_NUMBERS_ON_ARM,
    REFERENCE_KERNELS,
    QUANTIZED_ROWS,
];

const BOUNDS_FIRST: Edit = Edit {
    name: "bounds are the first operand",
    why: "x86 maxima and minima return the second operand if either is NaN; with the value first, NaN becomes the bound",
    files: Files::X86Microkernels,
    changes: &[
        ("_max_ps({}, vmin)", "_max_ps(vmin, {})", 261),
        ("_min_ps({}, vmax)", "_min_ps(vmax, {})", 261),
        ("_max_ps({}, voutput_min)", "_max_ps(voutput_min, {})", 541),
        ("_min_ps({}, voutput_max)", "_min_ps(voutput_max, {})", 549),
        ("_max_ps({}, vy_min)", "_max_ps(vy_min, {})", 8),
        ("_min_ps({}, vy_max)", "_min_ps(vy_max, {})", 8),
    ],
};

const LAST_INPUTS: Edit = Edit {
    name: "inputs behind a row are left out by position",
    why: "memory behind a row is read and has weights of 0; XNNPACK skips every input whose weight is 0, so NaN times 0 becomes 0",
    files: Files::These(&[
        "src/f32-gemm/gen/f32-gemm-4x2c4-minmax-sse.c",
        "src/f32-igemm/gen/f32-igemm-4x2c4-minmax-sse.c",
    ]),
    changes: &[(
        "_mm_cmpeq_ps(_mm_setzero_ps(), {})",
        "_mm_cmple_ps(_mm_set1_ps((float) (k / sizeof(float))), _mm_setr_ps(0.0f, 1.0f, 2.0f, 3.0f))",
        4,
    )],
};

const SPARE_TAPS: Edit = Edit {
    name: "spare taps read zeros",
    why: "a depthwise microkernel with more taps than the kernel multiplies a neighbour's inputs by 0, which is NaN if one is not finite",
    files: Files::These(&["src/operators/convolution-nhwc.c"]),
    changes: &[
        (
            "if (any_padding || tf_same_padding) {",
            "if (any_padding || tf_same_padding || \
             (ukernel_type == xnn_microkernel_type_dwconv && \
             convolution_op->ukernel.dwconv.tile_size > kernel_size)) {",
            1,
        ),
        (
            "const size_t step_width = convolution_op->dilation_width == 1 ?\n      \
             min(convolution_op->stride_width, kernel_width) : kernel_width;",
            "const size_t step_width = \
             xnnpack_sys_step_width(convolution_op, log2_input_element_size);",
            1,
        ),
    ],
};

const LARGEST_OF_NUMBERS: Edit = Edit {
    name: "max pooling ignores NaN",
    why: "TFLite's maximum starts from the lower bound and ignores NaN; XNNPACK's lets NaN replace a larger value",
    files: Files::These(&["src/f32-maxpool/f32-maxpool-9p8x-minmax-sse-c4.c"]),
    changes: &[
        (
            "_mm_max_ps(_mm_max_ps(vi0, vi1), {})",
            "_mm_max_ps({}, _mm_max_ps(vi1, _mm_max_ps(vi0, voutput_min)))",
            4,
        ),
        ("_mm_max_ps(vi2, vi3)", "_mm_max_ps(vi3, _mm_max_ps(vi2, voutput_min))", 4),
        ("_mm_max_ps(vi4, vi5)", "_mm_max_ps(vi5, _mm_max_ps(vi4, vmax23))", 4),
        ("_mm_max_ps(vi6, vi7)", "_mm_max_ps(vi7, _mm_max_ps(vi6, vmax45))", 4),
        ("_mm_max_ps(vmax2345, {})", "{}", 4),
        (
            "_mm_max_ps(_mm_min_ps(voutput_max, vmax), voutput_min)",
            "_mm_min_ps(voutput_max, vmax)",
            4,
        ),
    ],
};

const LARGEST_OF_NUMBERS_ON_ARM: Edit = Edit {
    name: "max pooling ignores NaN on Arm",
    why: "vmaxq_f32 propagates NaN, which TFLite ignores",
    files: Files::These(&["src/f32-maxpool/f32-maxpool-9p8x-minmax-neon-c4.c"]),
    changes: &[
        (
            "#include <arm_neon.h>\n",
            "#include <arm_neon.h>\n#include \"ukernels/largest_neon.h\"\n",
            1,
        ),
        ("vmaxq_f32(", "xnnpack_sys_largest(", 36),
    ],
};

const REFERENCE_KERNELS: Edit = Edit {
    name: "reference kernels propagate NaN",
    why: "SIGN of NaN is NaN, and so is the remainder of a division by 0",
    files: Files::These(&[
        "src/reference/unary-elementwise.cc",
        "src/reference/binary-elementwise.cc",
    ]),
    changes: &[
        (
            "float operator()(float x) const { return x < 0 ? -1 : x > 0 ? 1 : 0; }",
            "float operator()(float x) const { return x < 0 ? -1 : x > 0 ? 1 : x; }",
            1,
        ),
        (
            "// Define division by zero to be 0?\n    if (b == 0) {\n      return 0;\n    } else {\n      return std::fmod(a, b);\n    }",
            "return std::fmod(a, b);",
            1,
        ),
    ],
};

const QUANTIZED_ROWS: Edit = Edit {
    name: "quantization of rows",
    why: "everything computed from a row with NaN or infinity is NaN, and XNNPACK's function waits for a branch; see csrc/hooks/quantize_rows.h",
    files: Files::These(&["src/operator-run.c"]),
    changes: &[
        include_header!("hooks/quantize_rows.h"),
        (
            "xnn_f32_qd8_asymmetric_quantization_params(minmax[0], minmax[1])",
            "xnnpack_sys_row_quantization(minmax[0], minmax[1])",
            1,
        ),
    ],
};
