//! Memory: pointers to inputs, workspaces and the places of intermediate tensors.

use super::{Edit, Files};

pub const EDITS: &[Edit] =
    &[CONVOLUTION_POINTERS, RESIZE_POINTERS, HOSTED_VALUES, PLACES_OF_VALUES, WORKSPACES];

const CONVOLUTION_POINTERS: Edit = Edit {
    name: "pointers of convolutions",
    why: "XNNPACK keeps pointers for all rows of an image, a megabyte for the first layer of a network; see \
          csrc/hooks/indirection.h",
    files: Files::These(&["src/operators/convolution-nhwc.c"]),
    changes: &[
        include_header!("hooks/indirection.h"),
        // Pointers that are written at each run would be those of all rows.
        (
            "convolution_op->flags = flags & ~XNN_FLAG_TENSORFLOW_SAME_PADDING;",
            "convolution_op->flags = flags & ~(XNN_FLAG_TENSORFLOW_SAME_PADDING | XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER);",
            1,
        ),
        // The functions below allocate what they need. If a megabyte were freed at once, glibc would keep as much of later
        // frees.
        (
            "xnn_reallocate_memory((void*) convolution_op->indirection_buffer, indirection_buffer_size)",
            "xnn_reallocate_memory((void*) convolution_op->indirection_buffer, sizeof(struct xnnpack_sys_pointers))",
            1,
        ),
        (
            "xnn_reallocate_memory(convolution_op->indirection_buffer, indirection_buffer_size)",
            "xnn_reallocate_memory(convolution_op->indirection_buffer, sizeof(struct xnnpack_sys_pointers))",
            1,
        ),
        (
            r"
      xnn_indirection_init_conv2d(
        /*output_tile_size=*/mr,
        /*output_start=*/0,
        /*output_end=*/tiled_output_size,
        convolution_op->indirection_buffer,
        convolution_op->input,
        convolution_op->zero_buffer,
        convolution_op->input_pixel_stride << log2_input_element_size,
        convolution_op->input_height, convolution_op->input_width,
        convolution_op->output_height, convolution_op->output_width,
        convolution_op->kernel_height, convolution_op->kernel_width,
        convolution_op->stride_height, convolution_op->stride_width,
        convolution_op->dilation_height, convolution_op->dilation_width,
        convolution_op->padding_top, convolution_op->padding_left);
",
            r"
      if (!xnnpack_sys_point_conv2d(convolution_op, indirection_buffer_size, mr, log2_input_element_size)) {
        return xnn_status_out_of_memory;
      }
",
            1,
        ),
        (
            r"
      xnn_indirection_init_dwconv2d(
        /*output_y_start=*/0, /*output_y_end=*/convolution_op->output_height,
        convolution_op->indirection_buffer,
        convolution_op->input,
        convolution_op->input_pixel_stride << log2_input_element_size,
        convolution_op->zero_buffer,
        convolution_op->input_height, convolution_op->input_width,
        convolution_op->output_height, convolution_op->output_width,
        convolution_op->kernel_height, convolution_op->kernel_width,
        convolution_op->stride_height, convolution_op->stride_width,
        convolution_op->dilation_height, convolution_op->dilation_width,
        convolution_op->padding_top, convolution_op->padding_left,
        step_height, step_width, tile_size);
",
            r"
      if (!xnnpack_sys_point_dwconv2d(
              convolution_op, indirection_buffer_size, tile_size, step_height, step_width, log2_input_element_size)) {
        return xnn_status_out_of_memory;
      }
",
            1,
        ),
        (
            "(pthreadpool_task_3d_tile_2d_t) xnn_compute_batch_dqigemm;",
            "(pthreadpool_task_3d_tile_2d_t) (xnnpack_sys_tiles_repeat(convolution_op, mr)\n                \
             ? xnnpack_sys_compute_batch_dqigemm : xnn_compute_batch_dqigemm);",
            2,
        ),
        (
            "(pthreadpool_task_3d_tile_2d_t) xnn_compute_batch_igemm;",
            "(pthreadpool_task_3d_tile_2d_t) (xnnpack_sys_tiles_repeat(convolution_op, mr)\n                \
             ? xnnpack_sys_compute_batch_igemm : xnn_compute_batch_igemm);",
            2,
        ),
        (
            "(pthreadpool_task_2d_tile_2d_t) xnn_compute_dqigemm;",
            "(pthreadpool_task_2d_tile_2d_t) (xnnpack_sys_tiles_repeat(convolution_op, mr)\n                \
             ? xnnpack_sys_compute_dqigemm : xnn_compute_dqigemm);",
            2,
        ),
        (
            "(pthreadpool_task_2d_tile_2d_t) xnn_compute_igemm;",
            "(pthreadpool_task_2d_tile_2d_t) (xnnpack_sys_tiles_repeat(convolution_op, mr)\n                \
             ? xnnpack_sys_compute_igemm : xnn_compute_igemm);",
            2,
        ),
        ("xnn_compute_dwconv_unipass;", "xnnpack_sys_compute_dwconv_unipass;", 1),
    ],
};

const RESIZE_POINTERS: Edit = Edit {
    name: "pointers and weights of bilinear interpolation",
    why: "XNNPACK keeps four pointers and two weights for each pixel; see csrc/hooks/resize.h",
    files: Files::These(&["src/operators/resize-bilinear-nhwc.c"]),
    changes: &[
        include_header!("hooks/resize.h"),
        // Pointers that are written at each run would be those of all pixels.
        (
            "resize_op->flags = flags;",
            "resize_op->flags = flags & ~XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER;",
            1,
        ),
        (
            r"
      indirection_init(
        /*output_y_start=*/0, /*output_y_end=*/output_height,
        input_pixel_stride_in_bytes,
        input_height, input_width,
        output_height, output_width,
        dummy_input, resize_op->indirection_buffer, resize_op->packed_weights.pointer,
        !!(flags & XNN_FLAG_ALIGN_CORNERS),
        !!(flags & XNN_FLAG_TENSORFLOW_LEGACY_MODE));
",
            r"
      const struct xnnpack_sys_resize shapes = {
        .pixel_bytes = input_pixel_stride_in_bytes,
        .input_height = input_height, .input_width = input_width,
        .output_height = output_height, .output_width = output_width,
        .align_corners = !!(flags & XNN_FLAG_ALIGN_CORNERS),
        .legacy = !!(flags & XNN_FLAG_TENSORFLOW_LEGACY_MODE),
      };
      if (!xnnpack_sys_point_resize(resize_op, indirection_init, dummy_input, shapes, log2_weight_element_size)) {
        return xnn_status_out_of_memory;
      }
",
            1,
        ),
        // Threads take whole rows. XNNPACK divides by the size of a tile where it means to round up to it, so that tiles have
        // about as many pixels as there are tiles.
        (
            "const uint32_t output_size_subtile = ibilinear->pixel_tile;",
            "const size_t output_size_subtile = output_width;",
            1,
        ),
        (
            "divide_round_up(output_size_tile, max_output_size_tile * output_size_subtile) * output_size_subtile",
            "divide_round_up(max_output_size_tile, output_size_subtile) * output_size_subtile",
            1,
        ),
        (
            "(pthreadpool_task_2d_tile_1d_t) xnn_compute_resize_bilinear;",
            "(pthreadpool_task_2d_tile_1d_t) xnnpack_sys_compute_resize_bilinear;",
            1,
        ),
    ],
};

const HOSTED_VALUES: Edit = Edit {
    name: "fields for values in others",
    why: "csrc/memory/outputs.c and views.c place intermediate tensors in the memory of others, and keep where for each value of a \
          runtime",
    files: Files::These(&["src/xnnpack/subgraph.h"]),
    changes: &[
        (
            "  const void* fp32_data;\n};\n",
            "  const void* fp32_data;\n  \
         /// xnnpack-sys: the external value in whose memory this value lies, and where: at an offset behind an alignment. In the\n  \
         /// workspace only the offset counts, in the value whose memory this one reuses.\n  \
         uint32_t host_id;\n  size_t host_offset;\n  size_t host_alignment;\n};\n",
            1,
        ),
        (
            "  size_t workspace_alignment;\n  uint32_t flags;\n};\n",
            "  size_t workspace_alignment;\n  uint32_t flags;\n  \
         /// xnnpack-sys: tells whether the operator moves the bytes for which values were placed (csrc/memory/views.c).\n  \
         uint64_t planned_parts;\n};\n",
            1,
        ),
    ],
};

const RUNTIME: Files = Files::These(&["src/runtime.c"]);

const PLACES_OF_VALUES: Edit = Edit {
    name: "places of values",
    why: "XNNPACK's workspaces take up to 2.7 times as much memory as necessary, it does not use outputs for intermediate tensors, \
          and it copies tensors that only change their shapes; see csrc/memory/plan.c, outputs.c and views.c",
    files: RUNTIME,
    changes: &[
        include_header!("memory/outputs.h"),
        include_header!("memory/views.h"),
        (
            "optimize_tensor_allocation_for_in_place_operations(&mem_alloc_tracker, runtime);",
            "xnnpack_sys_share_values(&mem_alloc_tracker, runtime);",
            1,
        ),
        (
            "xnn_init_value_allocation_tracker(&mem_alloc_tracker, runtime);",
            "xnnpack_sys_start_plan(&mem_alloc_tracker, runtime);",
            1,
        ),
        (
            "xnn_plan_value_allocation_tracker(&mem_alloc_tracker);",
            "xnnpack_sys_finish_plan(&mem_alloc_tracker, runtime);",
            1,
        ),
        (
            "if (reallocation_required || !runtime->memory_planned) {",
            "if (reallocation_required || !runtime->memory_planned || !xnnpack_sys_values_fit(runtime)) {",
            1,
        ),
        // Both functions that set external values up: callers cannot set values in outputs.
        (
            "if (value->allocation_type != xnn_allocation_type_external) {\n      \
             xnn_log_error(\"failed to setup runtime:",
            "if (value->allocation_type != xnn_allocation_type_external || !xnn_value_is_external(value)) {\n      \
             xnn_log_error(\"failed to setup runtime:",
            2,
        ),
        (
            r"
    value->data = external_value->data;
  }

  #ifdef XNN_SLINKY_AVAILABLE
",
            r"
    value->data = external_value->data;
  }
  xnnpack_sys_point_values(runtime);

  #ifdef XNN_SLINKY_AVAILABLE
",
            1,
        ),
    ],
};

const WORKSPACES: Edit = Edit {
    name: "zeros of workspaces",
    why: "XNNPACK writes zeros to all of a workspace when a graph is loaded; see csrc/memory/workspace.c",
    files: RUNTIME,
    changes: &[
        include_header!("memory/workspace.h"),
        (
            "xnn_allocate_zero_simd_memory(mem_arena_size)",
            "xnnpack_sys_allocate_zeros(mem_arena_size)",
            1,
        ),
    ],
};
