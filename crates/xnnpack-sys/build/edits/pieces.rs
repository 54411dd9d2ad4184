//! Operators that call functions for many small pieces, such as a few channels of a pixel: `csrc/hooks` has functions that take several
//! at once.

use super::{Edit, Files};

pub const EDITS: &[Edit] =
    &[WHOLE_IMAGES, BINARY_ROWS, SOFTMAX_ROWS, SHORT_COPIES, COPIES_IN_PLACE, ROWS, SLICES, PADS];

const WHOLE_IMAGES: Edit = Edit {
    name: "poolings of whole images",
    why: "XNNPACK reads an address for each pixel of an image; see csrc/ukernels/pool_images.h",
    files: Files::These(&["src/operators/max-pooling-nhwc.c"]),
    changes: &[
        include_header!("hooks/pool_images.h"),
        (
            "  max_pooling_op->compute[0].range[1] = output_height;\n",
            "  max_pooling_op->compute[0].range[1] = output_height;\n  \
             if (!xnnpack_sys_pool_images(max_pooling_op, batch_size, log2_input_element_size)) {\n    \
             return xnn_status_unsupported_parameter;\n  \
             }\n",
            1,
        ),
    ],
};

const BINARY_ROWS: Edit = Edit {
    name: "rows of two operands",
    why: "XNNPACK calls a microkernel for each row if an operand has just one; see csrc/hooks/join_rows.c",
    files: Files::These(&["src/operators/binary-elementwise-nd.c"]),
    changes: &[
        include_header!("hooks/join_rows.h"),
        (
            "(pthreadpool_task_1d_t)xnn_compute_elementwise_binary_1d;\n            \
             op->compute[0].range[0] = compressed_output_shape[1];\n",
            "(pthreadpool_task_1d_t)xnn_compute_elementwise_binary_1d;\n            \
             op->compute[0].range[0] = compressed_output_shape[1];\n            \
             xnnpack_sys_join_rows(op, num_threads);\n",
            1,
        ),
    ],
};

const SOFTMAX_ROWS: Edit = Edit {
    name: "softmax of short rows",
    why: "XNNPACK has a microkernel for each step, which wait for each other; see csrc/hooks/softmax.c",
    files: Files::These(&["src/operators/softmax-nc.c"]),
    changes: &[
        include_header!("hooks/softmax.h"),
        (
            "(pthreadpool_task_1d_t) xnn_compute_floating_point_softmax;\n  \
             softmax_op->compute[0].range[0] = batch_size;\n",
            "(pthreadpool_task_1d_t) xnn_compute_floating_point_softmax;\n  \
             softmax_op->compute[0].range[0] = batch_size;\n  \
             xnnpack_sys_softmax_rows(softmax_op, log2_element_size);\n",
            1,
        ),
    ],
};

const SHORT_COPIES: Edit = Edit {
    name: "copies of a few bytes",
    why: "XNNPACK calls the C library for each piece of a transposition; see csrc/ukernels/copy.h",
    files: Files::These(&["src/xx-copy/xx-copy-scalar-memcpy.c"]),
    changes: &[
        (
            "#include \"xnnpack/vunary.h\"\n",
            "#include \"xnnpack/vunary.h\"\n#include \"ukernels/copy.h\"\n",
            1,
        ),
        ("memcpy(output, input, batch);", "xnnpack_sys_copy(output, input, batch);", 1),
    ],
};

const ROWS: Edit = Edit {
    name: "rows of copies with strides",
    why: "each thread fetches one row at a time, which takes longer than to copy a short row: concatenations of channels took \
          twice as long with two threads; and a short row takes less time than a call of memcpy, see csrc/ukernels/copy_rows.c",
    files: Files::These(&["src/operators/unary-elementwise-nc.c"]),
    changes: &[
        (
            "      op->compute[0].tile[0] = (num_threads == 1) ? batch_size : 1;",
            "      op->compute[0].tile[0] = (num_threads == 1) ? batch_size : 1 + 4095 / op->context.univector_strided.n;",
            1,
        ),
        (
            "    unary_elementwise_op->compute[0].tile[0] = (num_threads == 1) ? batch_size : 1;",
            "    unary_elementwise_op->compute[0].tile[0] = (num_threads == 1) ? batch_size : 1 + 4095 / unary_elementwise_op->context.univector_strided.n;",
            1,
        ),
        include_header!("ukernels/copy_rows.h"),
        (
            "unary_elementwise_op->compute[0].task_1d_tile_1d = (pthreadpool_task_1d_tile_1d_t) xnn_compute_univector_strided;",
            "unary_elementwise_op->compute[0].task_1d_tile_1d = (pthreadpool_task_1d_tile_1d_t) \
             (is_copy_operator(expected_operator_type) ? xnnpack_sys_compute_copied_rows : xnn_compute_univector_strided);",
            1,
        ),
    ],
};

const SLICES: Edit = Edit {
    name: "rows of slices",
    why: "XNNPACK divides a slice into rows, each of which costs more than it takes to copy a short one",
    files: Files::These(&["src/operators/slice-nd.c"]),
    changes: &[
        include_header!("ukernels/copy_rows.h"),
        (
            r"
      slice_op->compute[0].type = xnn_parallelization_type_1d;
      slice_op->compute[0].task_1d = (pthreadpool_task_1d_t)xnn_compute_slice_1d;
",
            r"
      slice_op->compute[0].type = xnn_parallelization_type_1d_tile_1d;
      slice_op->compute[0].task_1d_tile_1d = (pthreadpool_task_1d_tile_1d_t) xnnpack_sys_compute_sliced_rows;
      slice_op->compute[0].tile[0] = xnnpack_sys_rows_at_once(slice_op->context.slice.contiguous_size, threadpool);
",
            1,
        ),
        (
            r"
      slice_op->compute[0].type = xnn_parallelization_type_2d;
      slice_op->compute[0].task_2d = (pthreadpool_task_2d_t) xnn_compute_slice_2d;
",
            r"
      slice_op->compute[0].type = xnn_parallelization_type_2d_tile_1d;
      slice_op->compute[0].task_2d_tile_1d = (pthreadpool_task_2d_tile_1d_t) xnnpack_sys_compute_sliced_groups;
      slice_op->compute[0].tile[0] = xnnpack_sys_rows_at_once(slice_op->context.slice.contiguous_size, threadpool);
",
            1,
        ),
    ],
};

const PADS: Edit = Edit {
    name: "rows of pads",
    why: "XNNPACK pads the width of an image pixel by pixel, each with a call of two microkernels, and copies 16 bytes at a time",
    files: Files::These(&["src/operators/constant-pad-nd.c", "src/configs/xx-pad-config.c"]),
    changes: &[
        (
            "    if (is_current_dim_padded || is_previous_dim_padded) {\n",
            "    if (is_previous_dim_padded) {\n",
            1,
        ),
        (
            r"
      assert(!is_previous_dim_padded);
      assert(pre_padding == 0);
      assert(post_padding == 0);
      assert(i != 0);

      normalized_input_shape[XNN_MAX_TENSOR_DIMS - num_squeezed_dims] *= input_dim;
      normalized_output_shape[XNN_MAX_TENSOR_DIMS - num_squeezed_dims] *= input_dim;
",
            r"
      // The dimensions inside are whole: elements of all of them together are elements of one.
      assert(i != 0);

      normalized_pre_paddings[XNN_MAX_TENSOR_DIMS - num_squeezed_dims] =
        pre_padding * normalized_input_shape[XNN_MAX_TENSOR_DIMS - num_squeezed_dims];
      normalized_input_shape[XNN_MAX_TENSOR_DIMS - num_squeezed_dims] *= input_dim;
      normalized_output_shape[XNN_MAX_TENSOR_DIMS - num_squeezed_dims] *= pre_padding + input_dim + post_padding;
      is_previous_dim_padded = is_current_dim_padded;
",
            1,
        ),
        (
            "#include \"xnnpack/pad.h\"\n",
            "#include \"xnnpack/pad.h\"\n#include \"ukernels/copy_rows.h\"\n",
            1,
        ),
        (
            "xx_pad_config.ukernel = (xnn_pad_ukernel_fn) xnn_xx_pad_ukernel_p16__sse2_u16;",
            "xx_pad_config.ukernel = (xnn_pad_ukernel_fn) xnnpack_sys_pad;",
            1,
        ),
    ],
};

const COPIES_IN_PLACE: Edit = Edit {
    name: "copies in place",
    why: "XNNPACK takes a copy that is in place for one of nothing, so that a concatenation puts the next operand there, too; see \
          csrc/memory/views.c",
    files: Files::These(&["src/operators/unary-elementwise-nc.c"]),
    changes: &[(
        r"
  if (input == output && is_copy_operator(expected_operator_type)) {
    unary_elementwise_op->state = xnn_run_state_skip;
    return xnn_status_success;
  }
",
        "",
        1,
    )],
};
