//! Memory: pointers to inputs, packed weights, workspaces and the places of intermediate tensors.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[
    CONVOLUTION_POINTERS,
    RESIZE_POINTERS,
    CACHE_OF_DEPTHWISE_WEIGHTS,
    DEPTHWISE_NODES,
    CONVOLUTION_SLICES,
    FULLY_CONNECTED_SLICES,
    HOSTED_VALUES,
    PLACES_OF_VALUES,
    WORKSPACES,
];

const CONVOLUTION: Files = Files::These(&["src/operators/convolution-nhwc.c"]);

const CONVOLUTION_POINTERS: Edit = Edit {
    name: "pointers of convolutions",
    why: "XNNPACK keeps pointers for all rows of an image, a megabyte for the first layer of a network; see \
          csrc/hooks/indirection.h",
    files: CONVOLUTION,
    changes: &[
        include_header!("hooks/indirection.h"),
        // Pointers that are written at each run would be those of all rows.
        (
            "convolution_op->flags = flags & ~XNN_FLAG_TENSORFLOW_SAME_PADDING;",
            "convolution_op->flags = flags & ~(XNN_FLAG_TENSORFLOW_SAME_PADDING | XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER);",
            1,
        ),
        // The functions below allocate what they need. A megabyte that is given back at once would have glibc keep as
        // much of what is given back later.
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
        (
            "(pthreadpool_task_2d_tile_1d_t) xnn_compute_resize_bilinear;",
            "(pthreadpool_task_2d_tile_1d_t) xnnpack_sys_compute_resize_bilinear;",
            1,
        ),
    ],
};

const CACHE_OF_DEPTHWISE_WEIGHTS: Edit = Edit {
    name: "cache of depthwise weights",
    why: "XNNPACK packs depthwise weights before it looks for them in the weights cache",
    files: CONVOLUTION,
    changes: &[
        include_header!("hooks/depthwise_weights.h"),
        // The key is needed before the weights are packed.
        (
            r"
  uint32_t cache_seed = primary_tile ^ dwconv_ukernel->middle_tile ^ dwconv_ukernel->last_tile ^ kernel_height ^ kernel_width
      ^ groups ^ dwconv_ukernel->channel_tile ^ dwconv_ukernel->channel_subtile ^ dwconv_ukernel->channel_round ^ extra_weights_bytes;
  if (flags & XNN_FLAG_DEPTHWISE_CONVOLUTION) {
    cache_seed = ~cache_seed;
  }
",
            "\n",
            1,
        ),
        (
            r#"
  void* weights_ptr = xnn_get_pointer_to_write_weights(
      convolution_op, aligned_total_weights_size, packed_weights_padding_byte);
  if (weights_ptr == NULL) {
    xnn_log_error("failed to reserve or allocated %zu bytes for %s operator dwconv packed weights",
"#,
            r#"
  uint32_t cache_seed = primary_tile ^ dwconv_ukernel->middle_tile ^ dwconv_ukernel->last_tile ^ kernel_height ^ kernel_width
      ^ groups ^ dwconv_ukernel->channel_tile ^ dwconv_ukernel->channel_subtile ^ dwconv_ukernel->channel_round ^ extra_weights_bytes;
  if (flags & XNN_FLAG_DEPTHWISE_CONVOLUTION) {
    cache_seed = ~cache_seed;
  }
  const struct xnn_weights_cache_look_up_key depthwise_key = {.seed = cache_seed, .kernel = kernel, .bias = bias};
  void* weights_ptr = xnnpack_sys_depthwise_weights(
      convolution_op, aligned_total_weights_size, packed_weights_padding_byte, &depthwise_key);
  const bool weights_already_cached = xnnpack_sys_are_cached(convolution_op);
  if (weights_ptr == NULL) {
    xnn_log_error("failed to reserve or allocated %zu bytes for %s operator dwconv packed weights",
"#,
            1,
        ),
        (
            r"
  if (flags & XNN_FLAG_DEPTHWISE_CONVOLUTION) {
    pack_dwconv_hwg_w(
",
            r"
  if (weights_already_cached) {
    // They are packed.
  } else if (flags & XNN_FLAG_DEPTHWISE_CONVOLUTION) {
    pack_dwconv_hwg_w(
",
            1,
        ),
        (
            r"
  if (scale_params != NULL) {
    assert(init_scale_params != NULL);
    // TODO(zhin):",
            r"
  if (scale_params != NULL && !weights_already_cached) {
    assert(init_scale_params != NULL);
    // TODO(zhin):",
            1,
        ),
        // The other functions that create depthwise convolutions do not look for weights before they pack them.
        (
            r"
  assert(ukernel_type != xnn_microkernel_type_default);
",
            r"
  assert(ukernel_type != xnn_microkernel_type_default);
  if ((flags & XNN_FLAG_DEPTHWISE_CONVOLUTION) && ukernel_type != xnn_microkernel_type_dwconv) {
    convolution_op->weights_cache = NULL;
  }
",
            1,
        ),
    ],
};

const DEPTHWISE_NODES: Edit = Edit {
    name: "nodes of depthwise convolutions",
    why: "XNNPACK passes no weights cache on, so that every runtime packs its own weights, and has no depthwise \
          convolutions of inputs quantized at run time (csrc/hooks/depthwise_qd8.c)",
    files: Files::These(&["src/subgraph/depthwise-convolution-2d.c"]),
    changes: &[
        include_header!("hooks/depthwise_qd8.h"),
        // After the flags: the code cache and the weights cache.
        (
            "\n              NULL,\n              NULL,\n              &opdata",
            "\n              NULL,\n              weights_cache,\n              &opdata",
            2,
        ),
        (
            "\n          NULL,\n          NULL,\n          &opdata",
            "\n          NULL,\n          weights_cache,\n          &opdata",
            3,
        ),
        (
            "  if ((status = xnn_subgraph_check_xnnpack_initialized(xnn_node_type_depthwise_convolution_2d)) != xnn_status_success) {\n    \
             return status;\n  }\n",
            "  if ((status = xnn_subgraph_check_xnnpack_initialized(xnn_node_type_depthwise_convolution_2d)) != xnn_status_success) {\n    \
             return status;\n  }\n\n  if (xnnpack_sys_is_qd8(subgraph, input_id)) {\n    \
             return xnnpack_sys_define_qd8_depthwise_convolution_2d(\n        \
             subgraph, input_padding_top, input_padding_right, input_padding_bottom, input_padding_left, kernel_height,\n        \
             kernel_width, subsampling_height, subsampling_width, dilation_height, dilation_width, depth_multiplier,\n        \
             input_channels, output_min, output_max, input_id, filter_id, bias_id, output_id, flags);\n  }\n",
            1,
        ),
    ],
};

const CONVOLUTION_SLICES: Edit = Edit {
    name: "weights of convolutions in slices",
    why: "weights in a mapped file that are packed at once are in memory twice; see csrc/packing/pack_slices.h",
    files: CONVOLUTION,
    changes: &[
        include_header!("packing/pack_slices.h"),
        (
            r"
  switch (ukernel_type) {
    case xnn_microkernel_type_gemm:
      if(!weights_already_cached) {
",
            r"
  const struct xnnpack_sys_slice all_weights = {
    .channels = group_output_channels,
    .kernel = kernel,
    .bias = bias,
    .packed = weights_ptr,
    // 0 if elements have another size before they are packed.
    .kernel_bytes = flags & XNN_FLAG_FP32_STATIC_WEIGHTS ? 0 : kernel_size * group_input_channels << log2_filter_element_size,
    .bias_bytes = bias_element_size,
    .packed_bytes = (kernel_size * k_stride << log2_filter_element_size) + bias_element_size + extra_weights_bytes,
  };
  switch (ukernel_type) {
    case xnn_microkernel_type_gemm:
      if(!weights_already_cached) {
",
            1,
        ),
        (
            r"
        pack_gemm_goi_w(groups, group_output_channels, group_input_channels,
                        nr, kr, sr,
                        kernel, bias, /*scale=*/NULL, weights_ptr, gemm_config->nr * extra_weights_bytes,
                        packing_params);
",
            r"
        for (struct xnnpack_sys_slice slice = xnnpack_sys_first_slice(groups, nr, all_weights); slice.channels != 0;
             xnnpack_sys_next_slice(&slice)) {
          pack_gemm_goi_w(groups, slice.channels, group_input_channels,
                          nr, kr, sr,
                          slice.kernel, slice.bias, /*scale=*/NULL, slice.packed, gemm_config->nr * extra_weights_bytes,
                          packing_params);
        }
",
            1,
        ),
        (
            r"
          pack_conv_goki_w(
              groups, group_output_channels, kernel_size, group_input_channels,
              nr, kr, sr,
              kernel, bias, /*scale=*/NULL, weights_ptr, gemm_config->nr * extra_weights_bytes, packing_params);
",
            r"
          for (struct xnnpack_sys_slice slice = xnnpack_sys_first_slice(groups, nr, all_weights); slice.channels != 0;
               xnnpack_sys_next_slice(&slice)) {
            pack_conv_goki_w(
                groups, slice.channels, kernel_size, group_input_channels,
                nr, kr, sr,
                slice.kernel, slice.bias, /*scale=*/NULL, slice.packed, gemm_config->nr * extra_weights_bytes, packing_params);
          }
",
            1,
        ),
    ],
};

const FULLY_CONNECTED_SLICES: Edit = Edit {
    name: "weights of fully connected layers in slices",
    why: "weights in a mapped file that are packed at once are in memory twice; see csrc/packing/pack_slices.h",
    files: Files::These(&["src/operators/fully-connected-nc.c"]),
    changes: &[
        include_header!("packing/pack_slices.h"),
        (
            r"
          pack_gemm_goi_w(
            /*groups=*/1, output_channels, input_channels,
            nr, kr, sr,
            kernel, bias, /*scale=*/NULL,
            weights_ptr,
            gemm_config->nr * extra_weights_bytes,
            packing_params);
",
            r"
          const struct xnnpack_sys_slice all_weights = {
            .channels = output_channels,
            .kernel = kernel,
            .bias = bias,
            .packed = weights_ptr,
            // 0 if elements have another size before they are packed.
            .kernel_bytes = filter_is_nibble || flags & XNN_FLAG_FP32_STATIC_WEIGHTS ? 0 : input_channels << log2_filter_element_size,
            .bias_bytes = bias_element_size,
            .packed_bytes = weights_stride,
          };
          for (struct xnnpack_sys_slice slice = xnnpack_sys_first_slice(/*groups=*/1, nr, all_weights); slice.channels != 0;
               xnnpack_sys_next_slice(&slice)) {
            pack_gemm_goi_w(
              /*groups=*/1, slice.channels, input_channels,
              nr, kr, sr,
              slice.kernel, slice.bias, /*scale=*/NULL,
              slice.packed,
              gemm_config->nr * extra_weights_bytes,
              packing_params);
          }
",
            1,
        ),
    ],
};

const HOSTED_VALUES: Edit = Edit {
    name: "fields for values in outputs",
    why: "csrc/memory/outputs.c places intermediate tensors in outputs, and keeps where for each value of a runtime",
    files: Files::These(&["src/xnnpack/subgraph.h"]),
    changes: &[(
        "  const void* fp32_data;\n};\n",
        "  const void* fp32_data;\n  \
         /// xnnpack-sys: the output in whose memory this value lies if it is external to the workspace, and where in it.\n  \
         uint32_t host_id;\n  size_t host_offset;\n};\n",
        1,
    )],
};

const RUNTIME: Files = Files::These(&["src/runtime.c"]);

const PLACES_OF_VALUES: Edit = Edit {
    name: "places of values",
    why: "XNNPACK's workspaces take up to 2.7 times as much memory as they have to, and outputs are never used for \
          intermediate tensors; see csrc/memory/plan.c and outputs.c",
    files: RUNTIME,
    changes: &[
        include_header!("memory/outputs.h"),
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
        // Both functions that set external values up: values in outputs are none that a caller could set.
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
