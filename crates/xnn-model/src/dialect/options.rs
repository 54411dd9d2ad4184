//! Reads and writes operator options by one table.

/// Defines `read_options` and `write_options` for the module's `schema`.
///
/// A row is: operator, the schema's table, its builder arguments, the
/// accessor of the union member, and fields (ours = the schema's). `own` has
/// rows of the first union that only this dialect has, `second` those of the
/// second union. Operators with an empty table need only its name.
macro_rules! options {
    (own { $($own:tt)* } second { $($second:tt)* }) => {
        option_functions! {
            {
                Add: AddOptions AddOptionsArgs builtin_options_as_add_options
                    { activation = fused_activation_function, pot_scale_int16 = pot_scale_int16 };
                ArgMax: ArgMaxOptions ArgMaxOptionsArgs builtin_options_as_arg_max_options
                    { output_type = output_type };
                ArgMin: ArgMinOptions ArgMinOptionsArgs builtin_options_as_arg_min_options
                    { output_type = output_type };
                AveragePool2d: Pool2DOptions Pool2DOptionsArgs builtin_options_as_pool_2_doptions
                    { padding = padding, stride_w = stride_w, stride_h = stride_h, filter_width = filter_width,
                      filter_height = filter_height, activation = fused_activation_function };
                BidirectionalSequenceLstm: BidirectionalSequenceLSTMOptions BidirectionalSequenceLSTMOptionsArgs
                    builtin_options_as_bidirectional_sequence_lstmoptions
                    { activation = fused_activation_function, cell_clip = cell_clip, proj_clip = proj_clip,
                      merge_outputs = merge_outputs, time_major = time_major,
                      asymmetric_quantize_inputs = asymmetric_quantize_inputs };
                BidirectionalSequenceRnn: BidirectionalSequenceRNNOptions BidirectionalSequenceRNNOptionsArgs
                    builtin_options_as_bidirectional_sequence_rnnoptions
                    { time_major = time_major, activation = fused_activation_function, merge_outputs = merge_outputs,
                      asymmetric_quantize_inputs = asymmetric_quantize_inputs };
                Bucketize: BucketizeOptions BucketizeOptionsArgs builtin_options_as_bucketize_options
                    { boundaries = boundaries };
                Call: CallOptions CallOptionsArgs builtin_options_as_call_options
                    { subgraph = subgraph };
                CallOnce: CallOnceOptions CallOnceOptionsArgs builtin_options_as_call_once_options
                    { subgraph = init_subgraph_index };
                Cast: CastOptions CastOptionsArgs builtin_options_as_cast_options
                    { from = in_data_type, to = out_data_type };
                ConcatEmbeddings: ConcatEmbeddingsOptions ConcatEmbeddingsOptionsArgs
                    builtin_options_as_concat_embeddings_options
                    { num_channels = num_channels, num_columns_per_channel = num_columns_per_channel,
                      embedding_dim_per_channel = embedding_dim_per_channel };
                Concatenation: ConcatenationOptions ConcatenationOptionsArgs builtin_options_as_concatenation_options
                    { axis = axis, activation = fused_activation_function };
                Conv2d: Conv2DOptions Conv2DOptionsArgs builtin_options_as_conv_2_doptions
                    { padding = padding, stride_w = stride_w, stride_h = stride_h, dilation_w = dilation_w_factor,
                      dilation_h = dilation_h_factor, activation = fused_activation_function,
                      quantized_bias_type = quantized_bias_type };
                Conv3d: Conv3DOptions Conv3DOptionsArgs builtin_options_as_conv_3_doptions
                    { padding = padding, stride_d = stride_d, stride_w = stride_w, stride_h = stride_h,
                      dilation_d = dilation_d_factor, dilation_w = dilation_w_factor, dilation_h = dilation_h_factor,
                      activation = fused_activation_function };
                Conv3dTranspose: Conv3DOptions Conv3DOptionsArgs builtin_options_as_conv_3_doptions
                    { padding = padding, stride_d = stride_d, stride_w = stride_w, stride_h = stride_h,
                      dilation_d = dilation_d_factor, dilation_w = dilation_w_factor, dilation_h = dilation_h_factor,
                      activation = fused_activation_function };
                Cumsum: CumsumOptions CumsumOptionsArgs builtin_options_as_cumsum_options
                    { exclusive = exclusive, reverse = reverse };
                DepthToSpace: DepthToSpaceOptions DepthToSpaceOptionsArgs builtin_options_as_depth_to_space_options
                    { block_size = block_size };
                DepthwiseConv2d: DepthwiseConv2DOptions DepthwiseConv2DOptionsArgs
                    builtin_options_as_depthwise_conv_2_doptions
                    { padding = padding, stride_w = stride_w, stride_h = stride_h, depth_multiplier = depth_multiplier,
                      dilation_w = dilation_w_factor, dilation_h = dilation_h_factor,
                      activation = fused_activation_function };
                Div: DivOptions DivOptionsArgs builtin_options_as_div_options
                    { activation = fused_activation_function };
                EmbeddingLookupSparse: EmbeddingLookupSparseOptions EmbeddingLookupSparseOptionsArgs
                    builtin_options_as_embedding_lookup_sparse_options
                    { combiner = combiner };
                FakeQuant: FakeQuantOptions FakeQuantOptionsArgs builtin_options_as_fake_quant_options
                    { min = min, max = max, num_bits = num_bits, narrow_range = narrow_range };
                FullyConnected: FullyConnectedOptions FullyConnectedOptionsArgs
                    builtin_options_as_fully_connected_options
                    { activation = fused_activation_function, weights_format = weights_format,
                      keep_num_dims = keep_num_dims, asymmetric_quantize_inputs = asymmetric_quantize_inputs,
                      quantized_bias_type = quantized_bias_type };
                Gather: GatherOptions GatherOptionsArgs builtin_options_as_gather_options
                    { axis = axis, batch_dims = batch_dims };
                Gelu: GeluOptions GeluOptionsArgs builtin_options_as_gelu_options
                    { approximate = approximate };
                Hashtable: HashtableOptions HashtableOptionsArgs builtin_options_as_hashtable_options
                    { table_id = table_id, key_dtype = key_dtype, value_dtype = value_dtype };
                If: IfOptions IfOptionsArgs builtin_options_as_if_options
                    { then_subgraph = then_subgraph_index, else_subgraph = else_subgraph_index };
                L2Normalization: L2NormOptions L2NormOptionsArgs builtin_options_as_l2_norm_options
                    { activation = fused_activation_function };
                L2Pool2d: Pool2DOptions Pool2DOptionsArgs builtin_options_as_pool_2_doptions
                    { padding = padding, stride_w = stride_w, stride_h = stride_h, filter_width = filter_width,
                      filter_height = filter_height, activation = fused_activation_function };
                LeakyRelu: LeakyReluOptions LeakyReluOptionsArgs builtin_options_as_leaky_relu_options
                    { alpha = alpha };
                LocalResponseNormalization: LocalResponseNormalizationOptions LocalResponseNormalizationOptionsArgs
                    builtin_options_as_local_response_normalization_options
                    { radius = radius, bias = bias, alpha = alpha, beta = beta };
                LshProjection: LSHProjectionOptions LSHProjectionOptionsArgs builtin_options_as_lshprojection_options
                    { kind = type_ };
                Lstm: LSTMOptions LSTMOptionsArgs builtin_options_as_lstmoptions
                    { activation = fused_activation_function, cell_clip = cell_clip, proj_clip = proj_clip,
                      basic = kernel_type, asymmetric_quantize_inputs = asymmetric_quantize_inputs };
                MaxPool2d: Pool2DOptions Pool2DOptionsArgs builtin_options_as_pool_2_doptions
                    { padding = padding, stride_w = stride_w, stride_h = stride_h, filter_width = filter_width,
                      filter_height = filter_height, activation = fused_activation_function };
                Mean: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                MirrorPad: MirrorPadOptions MirrorPadOptionsArgs builtin_options_as_mirror_pad_options
                    { symmetric = mode };
                Mul: MulOptions MulOptionsArgs builtin_options_as_mul_options
                    { activation = fused_activation_function };
                Multinomial: RandomOptions RandomOptionsArgs builtin_options_as_random_options
                    { seed = seed, seed2 = seed2 };
                OneHot: OneHotOptions OneHotOptionsArgs builtin_options_as_one_hot_options
                    { axis = axis };
                Pack: PackOptions PackOptionsArgs builtin_options_as_pack_options
                    { values_count = values_count, axis = axis };
                RandomStandardNormal: RandomOptions RandomOptionsArgs builtin_options_as_random_options
                    { seed = seed, seed2 = seed2 };
                RandomUniform: RandomOptions RandomOptionsArgs builtin_options_as_random_options
                    { seed = seed, seed2 = seed2 };
                ReduceAll: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                ReduceAny: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                ReduceMax: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                ReduceMin: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                ReduceProd: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                Reshape: ReshapeOptions ReshapeOptionsArgs builtin_options_as_reshape_options
                    { new_shape = new_shape };
                ResizeBilinear: ResizeBilinearOptions ResizeBilinearOptionsArgs
                    builtin_options_as_resize_bilinear_options
                    { align_corners = align_corners, half_pixel_centers = half_pixel_centers };
                ResizeNearestNeighbor: ResizeNearestNeighborOptions ResizeNearestNeighborOptionsArgs
                    builtin_options_as_resize_nearest_neighbor_options
                    { align_corners = align_corners, half_pixel_centers = half_pixel_centers };
                ReverseSequence: ReverseSequenceOptions ReverseSequenceOptionsArgs
                    builtin_options_as_reverse_sequence_options
                    { seq_dim = seq_dim, batch_dim = batch_dim };
                Rnn: RNNOptions RNNOptionsArgs builtin_options_as_rnnoptions
                    { activation = fused_activation_function, asymmetric_quantize_inputs = asymmetric_quantize_inputs };
                Shape: ShapeOptions ShapeOptionsArgs builtin_options_as_shape_options
                    { out_type = out_type };
                SkipGram: SkipGramOptions SkipGramOptionsArgs builtin_options_as_skip_gram_options
                    { ngram_size = ngram_size, max_skip_size = max_skip_size, include_all_ngrams = include_all_ngrams };
                Softmax: SoftmaxOptions SoftmaxOptionsArgs builtin_options_as_softmax_options
                    { beta = beta };
                SpaceToDepth: SpaceToDepthOptions SpaceToDepthOptionsArgs builtin_options_as_space_to_depth_options
                    { block_size = block_size };
                SparseToDense: SparseToDenseOptions SparseToDenseOptionsArgs
                    builtin_options_as_sparse_to_dense_options
                    { validate_indices = validate_indices };
                Split: SplitOptions SplitOptionsArgs builtin_options_as_split_options
                    { num_splits = num_splits };
                SplitV: SplitVOptions SplitVOptionsArgs builtin_options_as_split_voptions
                    { num_splits = num_splits };
                Squeeze: SqueezeOptions SqueezeOptionsArgs builtin_options_as_squeeze_options
                    { squeeze_dims = squeeze_dims };
                StridedSlice: StridedSliceOptions StridedSliceOptionsArgs builtin_options_as_strided_slice_options
                    { begin_mask = begin_mask, end_mask = end_mask, ellipsis_mask = ellipsis_mask,
                      new_axis_mask = new_axis_mask, shrink_axis_mask = shrink_axis_mask, offset = offset };
                Sub: SubOptions SubOptionsArgs builtin_options_as_sub_options
                    { activation = fused_activation_function, pot_scale_int16 = pot_scale_int16 };
                Sum: ReducerOptions ReducerOptionsArgs builtin_options_as_reducer_options
                    { keep_dims = keep_dims };
                Svdf: SVDFOptions SVDFOptionsArgs builtin_options_as_svdfoptions
                    { rank = rank, activation = fused_activation_function,
                      asymmetric_quantize_inputs = asymmetric_quantize_inputs };
                TransposeConv: TransposeConvOptions TransposeConvOptionsArgs builtin_options_as_transpose_conv_options
                    { padding = padding, stride_w = stride_w, stride_h = stride_h,
                      activation = fused_activation_function, quantized_bias_type = quantized_bias_type };
                UnidirectionalSequenceLstm: UnidirectionalSequenceLSTMOptions UnidirectionalSequenceLSTMOptionsArgs
                    builtin_options_as_unidirectional_sequence_lstmoptions
                    { activation = fused_activation_function, cell_clip = cell_clip, proj_clip = proj_clip,
                      time_major = time_major, asymmetric_quantize_inputs = asymmetric_quantize_inputs,
                      diagonal_recurrent_tensors = diagonal_recurrent_tensors };
                UnidirectionalSequenceRnn: SequenceRNNOptions SequenceRNNOptionsArgs
                    builtin_options_as_sequence_rnnoptions
                    { time_major = time_major, activation = fused_activation_function,
                      asymmetric_quantize_inputs = asymmetric_quantize_inputs };
                Unique: UniqueOptions UniqueOptionsArgs builtin_options_as_unique_options
                    { idx_out_type = idx_out_type };
                Unpack: UnpackOptions UnpackOptionsArgs builtin_options_as_unpack_options
                    { num = num, axis = axis };
                VarHandle: VarHandleOptions VarHandleOptionsArgs builtin_options_as_var_handle_options
                    { container = container, shared_name = shared_name };
                While: WhileOptions WhileOptionsArgs builtin_options_as_while_options
                    { cond_subgraph = cond_subgraph_index, body_subgraph = body_subgraph_index };
                $($own)*
            }
            { $($second)* }
            {
                Abs: AbsOptions;
                AddN: AddNOptions;
                AssignVariable: AssignVariableOptions;
                Atan2: ATan2Options;
                BatchToSpaceNd: BatchToSpaceNDOptions;
                Bitcast: BitcastOptions;
                BitwiseXor: BitwiseXorOptions;
                BroadcastTo: BroadcastToOptions;
                Cos: CosOptions;
                Densify: DensifyOptions;
                Dequantize: DequantizeOptions;
                DynamicUpdateSlice: DynamicUpdateSliceOptions;
                Equal: EqualOptions;
                Exp: ExpOptions;
                ExpandDims: ExpandDimsOptions;
                Fill: FillOptions;
                FloorDiv: FloorDivOptions;
                FloorMod: FloorModOptions;
                GatherNd: GatherNdOptions;
                Greater: GreaterOptions;
                GreaterEqual: GreaterEqualOptions;
                HardSwish: HardSwishOptions;
                HashtableFind: HashtableFindOptions;
                HashtableImport: HashtableImportOptions;
                HashtableSize: HashtableSizeOptions;
                Less: LessOptions;
                LessEqual: LessEqualOptions;
                LogSoftmax: LogSoftmaxOptions;
                LogicalAnd: LogicalAndOptions;
                LogicalNot: LogicalNotOptions;
                LogicalOr: LogicalOrOptions;
                MatrixDiag: MatrixDiagOptions;
                MatrixSetDiag: MatrixSetDiagOptions;
                Maximum: MaximumMinimumOptions;
                Minimum: MaximumMinimumOptions;
                Neg: NegOptions;
                NonMaxSuppressionV4: NonMaxSuppressionV4Options;
                NonMaxSuppressionV5: NonMaxSuppressionV5Options;
                NotEqual: NotEqualOptions;
                Pad: PadOptions;
                PadV2: PadV2Options;
                Pow: PowOptions;
                Quantize: QuantizeOptions;
                Range: RangeOptions;
                Rank: RankOptions;
                ReadVariable: ReadVariableOptions;
                ReverseV2: ReverseV2Options;
                Rfft2d: Rfft2dOptions;
                RightShift: RightShiftOptions;
                ScatterNd: ScatterNdOptions;
                SegmentSum: SegmentSumOptions;
                Select: SelectOptions;
                SelectV2: SelectV2Options;
                Sign: SignOptions;
                Slice: SliceOptions;
                SpaceToBatchNd: SpaceToBatchNDOptions;
                Square: SquareOptions;
                SquaredDifference: SquaredDifferenceOptions;
                Tile: TileOptions;
                TopkV2: TopKV2Options;
                Transpose: TransposeOptions;
                UnsortedSegmentMax: UnsortedSegmentMaxOptions;
                UnsortedSegmentMin: UnsortedSegmentMinOptions;
                UnsortedSegmentProd: UnsortedSegmentProdOptions;
                UnsortedSegmentSum: UnsortedSegmentSumOptions;
                Where: WhereOptions;
                ZerosLike: ZerosLikeOptions;
            }
        }
    };
}

macro_rules! option_functions {
    (
        { $($op:ident: $table:ident $args:ident $accessor:ident { $($ours:ident = $wire:ident),* };)* }
        { $($op2:ident: $table2:ident $args2:ident $accessor2:ident { $($ours2:ident = $wire2:ident),* };)* }
        { $($bare:ident: $bare_table:ident;)* }
    ) => {
        /// Reads an operator's options. A missing table means the defaults. Operators without
        /// options ignore the table.
        fn read_options(op: Op, file: &schema::Operator<'_>) -> Result<Op> {
            Ok(match op {
                $(Op::$op(mut options) => {
                    match file.$accessor() {
                        Some(table) => {
                            $(options.$ours = FromWire::from_wire(table.$wire())?;)*
                        }
                        None => no_options(file)?,
                    }
                    Op::$op(options)
                })*
                $(Op::$op2(mut options) => {
                    match file.$accessor2() {
                        Some(table) => {
                            $(options.$ours2 = FromWire::from_wire(table.$wire2())?;)*
                        }
                        None => no_options(file)?,
                    }
                    Op::$op2(options)
                })*
                bare => bare,
            })
        }

        /// Writes an operator's options and sets the union fields of `args`.
        #[allow(clippy::needless_update, reason = "some tables have fields that the representation drops")]
        fn write_options(
            op: &Op,
            builder: &mut FlatBufferBuilder<'_>,
            args: &mut schema::OperatorArgs<'_>,
        ) -> Result<()> {
            match op {
                $(Op::$op(options) => {
                    let table = schema::$args {
                        $($wire: options.$ours.to_wire(builder)?,)*
                        ..Default::default()
                    };
                    args.builtin_options_type = schema::BuiltinOptions::$table;
                    args.builtin_options =
                        Some(schema::$table::create(builder, &table).as_union_value());
                })*
                $(Op::$op2(options) => {
                    let table = schema::$args2 {
                        $($wire2: options.$ours2.to_wire(builder)?,)*
                        ..Default::default()
                    };
                    args.builtin_options_2_type = schema::BuiltinOptions2::$table2;
                    args.builtin_options_2 =
                        Some(schema::$table2::create(builder, &table).as_union_value());
                })*
                $(Op::$bare => {
                    let start = builder.start_table();
                    args.builtin_options_type = schema::BuiltinOptions::$bare_table;
                    args.builtin_options = Some(builder.end_table(start).as_union_value());
                })*
                _ => {}
            }
            Ok(())
        }

        /// Refuses a table of options of another operator.
        fn no_options(file: &schema::Operator<'_>) -> Result<()> {
            let first = file.builtin_options_type();
            let second = file.builtin_options_2_type();
            if first == schema::BuiltinOptions::NONE && second == schema::BuiltinOptions2::NONE {
                return Ok(());
            }
            let name = match first.0 {
                0 => second.variant_name(),
                _ => first.variant_name(),
            };
            Err(Error::invalid(match name {
                Some(name) => format!("its options are a {name}, which belongs to another operator"),
                None => format!("its options have the unknown tags {} and {}", first.0, second.0),
            }))
        }
    };
}
