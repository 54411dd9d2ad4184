//! How graphs are optimized and operators run.

use super::{Edit, Files};

pub const EDITS: &[Edit] =
    &[OPTIMIZATION, OPERATORS, DENORMALS, TILES, ROWS, COPIES, SLICES, PADS, QUANTIZED_IMAGES];

const OPTIMIZATION: Edit = Edit {
    name: "optimization of graphs",
    why: "csrc/hooks/optimize.c adds optimizations to XNNPACK's",
    files: Files::These(&["src/runtime.c"]),
    changes: &[
        include_header!("hooks/run.h"),
        ("status = xnn_subgraph_optimize(", "status = xnnpack_sys_optimize_subgraph(", 1),
    ],
};

const OPERATORS: Edit = Edit {
    name: "denormals between operators",
    why: "XNNPACK computes everything without denormals, and pthreadpool reads and writes the control register for every \
          step of every operator; see csrc/hooks/denormals.c and run.c",
    files: Files::These(&["src/runtime.c"]),
    changes: &[
        (
            "  *runtime_out = runtime;\n  return xnn_status_success;\n",
            "  xnnpack_sys_mark_denormals(subgraph, runtime);\n  *runtime_out = runtime;\n  return xnn_status_success;\n",
            1,
        ),
        // `xnn_invoke_runtime` in `csrc/hooks/run.c` calls the renamed function.
        (
            "enum xnn_status xnn_invoke_runtime(\n  xnn_runtime_t runtime)\n{",
            "enum xnn_status xnnpack_sys_invoke_runtime(\n  xnn_runtime_t runtime)\n{",
            1,
        ),
        (
            "= xnn_run_operator_with_index(runtime->opdata[i]",
            "= xnnpack_sys_run_operator(runtime->opdata[i]",
            1,
        ),
    ],
};

const DENORMALS: Edit = Edit {
    name: "operators that keep denormals",
    why: "a quotient or a logarithm of a denormal is far from that of 0; see csrc/hooks/denormals.c",
    files: Files::These(&["src/operator-run.c"]),
    changes: &[
        include_header!("hooks/denormals.h"),
        (
            "uint32_t flags = PTHREADPOOL_FLAG_DISABLE_DENORMALS;",
            "uint32_t flags = xnnpack_sys_denormals_flag(op->flags, threadpool);",
            1,
        ),
    ],
};

const TILES: Edit = Edit {
    name: "order of tiles",
    why: "weights that exceed the second-level cache are fetched anew for every few rows; see csrc/hooks/tile_order.c",
    files: Files::These(&["src/operator-run.c"]),
    changes: &[
        include_header!("hooks/tile_order.h"),
        (
            "        pthreadpool_parallelize_2d_tile_2d(",
            "        xnnpack_sys_parallelize_2d_tile_2d(",
            1,
        ),
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

const COPIES: Edit = Edit {
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

const QUANTIZED_IMAGES: Edit = Edit {
    name: "quantization of images",
    why: "to XNNPACK an image is one row, which one thread quantizes, and it does not round as TFLite's reference kernels \
          do; see csrc/hooks/quantize_qd8.c",
    files: Files::These(&["src/subgraph/unary.c"]),
    changes: &[
        include_header!("hooks/quantize_qd8.h"),
        (
            "status = xnn_reshape_convert_nc_f32_qd8(",
            "status = (num_nonbatch_dims == 3 ? xnnpack_sys_reshape_quantized_images : xnn_reshape_convert_nc_f32_qd8)(",
            1,
        ),
    ],
};
