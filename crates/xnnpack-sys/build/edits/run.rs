//! How graphs are optimized and operators run.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[OPTIMIZATION, OPERATORS, DENORMALS, TILES, QUANTIZED_IMAGES];

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
