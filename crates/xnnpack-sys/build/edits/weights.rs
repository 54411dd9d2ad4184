//! Packed weights: the cache of depthwise weights, and packing of weights in slices.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[
    CACHE_OF_DEPTHWISE_WEIGHTS,
    DEPTHWISE_NODES,
    CONVOLUTION_SLICES,
    FULLY_CONNECTED_SLICES,
    FULLY_CONNECTED_SEED,
    ZEROED_MEMORY,
    BYTES,
];

const FULLY_CONNECTED_SEED: Edit = Edit {
    name: "seed of fully connected layers",
    why: "weights of several layers are packed for AMX or not, depending on their rows",
    files: Files::These(&["src/operators/fully-connected-nc.c"]),
    changes: &[(
        "^ extra_weights_bytes ^ operator_type;",
        "^ extra_weights_bytes ^ operator_type ^ ((uint32_t) gemm_config->mr << 16);",
        1,
    )],
};

const CONVOLUTION: Files = Files::These(&["src/operators/convolution-nhwc.c"]);

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
    why: "XNNPACK does not pass the weights cache, so that every runtime packs its own weights, and has no depthwise \
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
    why: "XNNPACK packs all weights at once and with one thread; see csrc/packing/pack_slices.h",
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
  struct xnnpack_sys_weights all_weights = {
    .pack_gemm = pack_gemm_goi_w,
    .groups = groups,
    .channels = group_output_channels,
    .positions = kernel_size,
    .depth = group_input_channels,
    .nr = nr,
    .kr = kr,
    .sr = sr,
    .kernel = kernel,
    .bias = bias,
    .packed = weights_ptr,
    .extra_bytes = gemm_config->nr * extra_weights_bytes,
    .params = packing_params,
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
            "\n        xnnpack_sys_pack(&all_weights);\n",
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
          all_weights.pack_conv = pack_conv_goki_w;
          xnnpack_sys_pack(&all_weights);
",
            1,
        ),
    ],
};

const FULLY_CONNECTED_SLICES: Edit = Edit {
    name: "weights of fully connected layers in slices",
    why: "XNNPACK packs all weights at once and with one thread; see csrc/packing/pack_slices.h",
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
          xnnpack_sys_pack(&(const struct xnnpack_sys_weights) {
            .pack_gemm = pack_gemm_goi_w,
            .groups = 1,
            .channels = output_channels,
            .depth = input_channels,
            .nr = nr,
            .kr = kr,
            .sr = sr,
            .kernel = kernel,
            .bias = bias,
            .packed = weights_ptr,
            .extra_bytes = gemm_config->nr * extra_weights_bytes,
            .params = packing_params,
            .kernel_bytes = filter_is_nibble || flags & XNN_FLAG_FP32_STATIC_WEIGHTS ? 0 : input_channels << log2_filter_element_size,
            .bias_bytes = bias_element_size,
            .packed_bytes = weights_stride,
          });
",
            1,
        ),
    ],
};

const ZEROED_MEMORY: Edit = Edit {
    name: "memory for packed weights",
    why: "XNNPACK fills the memory of the weights cache, which is zero already, before it packs; this takes a sixth of \
          the time to pack large weights",
    files: Files::These(&["src/operator-utils.c"]),
    changes: &[(
        "  memset(weights_ptr, padding_byte, aligned_weights_size);\n",
        "  if (padding_byte != 0 || !use_weights_cache(op)) {\n    \
         memset(weights_ptr, padding_byte, aligned_weights_size);\n  }\n",
        1,
    )],
};

/// XNNPACK's function under another name. `csrc/packing/pack_bytes.c` has its name.
macro_rules! renamed {
    ($function:literal) => {
        (
            concat!("\nvoid xnn_pack_", $function, "_w("),
            concat!("\nvoid xnn_pack_single_", $function, "_w("),
            1,
        )
    };
}

const BYTES: Edit = Edit {
    name: "packing of 8-bit weights",
    why: "XNNPACK copies and adds weights one by one, which takes half of the time to load a model",
    files: Files::These(&["src/reference/packing.cc"]),
    changes: &[
        renamed!("qu8_gemm_goi"),
        renamed!("qs8_gemm_goi"),
        renamed!("qs8_to_qu8_gemm_goi"),
        renamed!("qu8_conv_goki"),
        renamed!("qs8_conv_goki"),
        renamed!("qs8_to_qu8_conv_goki"),
    ],
};
