//! Operators with typed options.
//!
//! Names and codes are those of the TFLite schema's `BuiltinOperator`, which Circle extends with
//! negative codes. Options have the fields of the schema that affect results, with the schema's
//! defaults.

use std::fmt;

use bytes::Bytes;

use crate::types::{DType, SubgraphId};

/// Defines the [`Op`] enum and its tables of names and codes.
macro_rules! operators {
    ($($(#[$doc:meta])* $variant:ident $(($options:ty))? = $code:literal, $name:literal;)*) => {
        /// A builtin operator with its options, a custom operator, or an unknown builtin.
        ///
        /// Variants are named after the builtins; [`Op::name`] gives the schema's spelling.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "variants are the schema's operators, named after them")]
        pub enum Op {
            $($(#[$doc])* $variant $(($options))?,)*
            /// An operator that is not part of the schema.
            Custom(CustomOptions),
            /// An unknown builtin, whose options are not kept.
            Unknown {
                /// The schema's code.
                code: i32,
            },
        }

        impl Op {
            /// Names of all known builtins.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// The schema's name (`CONV_2D`), the custom operator's name, or `UNKNOWN`.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                    Self::Custom(custom) => &custom.code,
                    Self::Unknown { .. } => "UNKNOWN",
                }
            }

            /// The schema's code; 32 for custom operators.
            #[must_use]
            pub const fn code(&self) -> i32 {
                match self {
                    $(Self::$variant { .. } => $code,)*
                    Self::Custom(_) => CUSTOM_CODE,
                    Self::Unknown { code } => *code,
                }
            }

            /// The operator with this code and default options; `None` for unknown codes and for
            /// CUSTOM.
            #[must_use]
            pub fn from_code(code: i32) -> Option<Self> {
                Some(match code {
                    $($code => operators!(@default $variant $(($options))?),)*
                    _ => return None,
                })
            }

            /// The name of a code; `None` for unknown codes.
            #[must_use]
            pub const fn name_of(code: i32) -> Option<&'static str> {
                Some(match code {
                    $($code => $name,)*
                    CUSTOM_CODE => "CUSTOM",
                    _ => return None,
                })
            }
        }
    };
    (@default $variant:ident) => { Self::$variant };
    (@default $variant:ident ($options:ty)) => { Self::$variant(<$options>::default()) };
}

/// The code of custom operators.
pub const CUSTOM_CODE: i32 = 32;

operators! {
    Add(ArithmeticOptions) = 0, "ADD";
    AveragePool2d(Pool2dOptions) = 1, "AVERAGE_POOL_2D";
    Concatenation(ConcatenationOptions) = 2, "CONCATENATION";
    Conv2d(Conv2dOptions) = 3, "CONV_2D";
    DepthwiseConv2d(DepthwiseConv2dOptions) = 4, "DEPTHWISE_CONV_2D";
    DepthToSpace(BlockOptions) = 5, "DEPTH_TO_SPACE";
    Dequantize = 6, "DEQUANTIZE";
    EmbeddingLookup = 7, "EMBEDDING_LOOKUP";
    Floor = 8, "FLOOR";
    FullyConnected(FullyConnectedOptions) = 9, "FULLY_CONNECTED";
    HashtableLookup = 10, "HASHTABLE_LOOKUP";
    L2Normalization(ActivationOptions) = 11, "L2_NORMALIZATION";
    L2Pool2d(Pool2dOptions) = 12, "L2_POOL_2D";
    LocalResponseNormalization(LocalResponseNormalizationOptions) = 13, "LOCAL_RESPONSE_NORMALIZATION";
    Logistic = 14, "LOGISTIC";
    LshProjection(LshProjectionOptions) = 15, "LSH_PROJECTION";
    Lstm(LstmOptions) = 16, "LSTM";
    MaxPool2d(Pool2dOptions) = 17, "MAX_POOL_2D";
    Mul(ActivationOptions) = 18, "MUL";
    Relu = 19, "RELU";
    ReluN1To1 = 20, "RELU_N1_TO_1";
    Relu6 = 21, "RELU6";
    Reshape(ReshapeOptions) = 22, "RESHAPE";
    ResizeBilinear(ResizeOptions) = 23, "RESIZE_BILINEAR";
    Rnn(RnnOptions) = 24, "RNN";
    Softmax(SoftmaxOptions) = 25, "SOFTMAX";
    SpaceToDepth(BlockOptions) = 26, "SPACE_TO_DEPTH";
    Svdf(SvdfOptions) = 27, "SVDF";
    Tanh = 28, "TANH";
    ConcatEmbeddings(ConcatEmbeddingsOptions) = 29, "CONCAT_EMBEDDINGS";
    SkipGram(SkipGramOptions) = 30, "SKIP_GRAM";
    Call(CallOptions) = 31, "CALL";
    EmbeddingLookupSparse(EmbeddingLookupSparseOptions) = 33, "EMBEDDING_LOOKUP_SPARSE";
    Pad = 34, "PAD";
    UnidirectionalSequenceRnn(SequenceRnnOptions) = 35, "UNIDIRECTIONAL_SEQUENCE_RNN";
    Gather(GatherOptions) = 36, "GATHER";
    BatchToSpaceNd = 37, "BATCH_TO_SPACE_ND";
    SpaceToBatchNd = 38, "SPACE_TO_BATCH_ND";
    Transpose = 39, "TRANSPOSE";
    Mean(ReducerOptions) = 40, "MEAN";
    Sub(ArithmeticOptions) = 41, "SUB";
    Div(ActivationOptions) = 42, "DIV";
    Squeeze(SqueezeOptions) = 43, "SQUEEZE";
    UnidirectionalSequenceLstm(SequenceLstmOptions) = 44, "UNIDIRECTIONAL_SEQUENCE_LSTM";
    StridedSlice(StridedSliceOptions) = 45, "STRIDED_SLICE";
    BidirectionalSequenceRnn(BidirectionalSequenceRnnOptions) = 46, "BIDIRECTIONAL_SEQUENCE_RNN";
    Exp = 47, "EXP";
    TopkV2 = 48, "TOPK_V2";
    Split(SplitOptions) = 49, "SPLIT";
    LogSoftmax = 50, "LOG_SOFTMAX";
    Delegate = 51, "DELEGATE";
    BidirectionalSequenceLstm(BidirectionalSequenceLstmOptions) = 52, "BIDIRECTIONAL_SEQUENCE_LSTM";
    Cast(CastOptions) = 53, "CAST";
    Prelu = 54, "PRELU";
    Maximum = 55, "MAXIMUM";
    ArgMax(ArgMinMaxOptions) = 56, "ARG_MAX";
    Minimum = 57, "MINIMUM";
    Less = 58, "LESS";
    Neg = 59, "NEG";
    PadV2 = 60, "PADV2";
    Greater = 61, "GREATER";
    GreaterEqual = 62, "GREATER_EQUAL";
    LessEqual = 63, "LESS_EQUAL";
    Select = 64, "SELECT";
    Slice = 65, "SLICE";
    Sin = 66, "SIN";
    TransposeConv(TransposeConvOptions) = 67, "TRANSPOSE_CONV";
    SparseToDense(SparseToDenseOptions) = 68, "SPARSE_TO_DENSE";
    Tile = 69, "TILE";
    ExpandDims = 70, "EXPAND_DIMS";
    Equal = 71, "EQUAL";
    NotEqual = 72, "NOT_EQUAL";
    Log = 73, "LOG";
    Sum(ReducerOptions) = 74, "SUM";
    Sqrt = 75, "SQRT";
    Rsqrt = 76, "RSQRT";
    Shape(ShapeOptions) = 77, "SHAPE";
    Pow = 78, "POW";
    ArgMin(ArgMinMaxOptions) = 79, "ARG_MIN";
    FakeQuant(FakeQuantOptions) = 80, "FAKE_QUANT";
    ReduceProd(ReducerOptions) = 81, "REDUCE_PROD";
    ReduceMax(ReducerOptions) = 82, "REDUCE_MAX";
    Pack(PackOptions) = 83, "PACK";
    LogicalOr = 84, "LOGICAL_OR";
    OneHot(OneHotOptions) = 85, "ONE_HOT";
    LogicalAnd = 86, "LOGICAL_AND";
    LogicalNot = 87, "LOGICAL_NOT";
    Unpack(UnpackOptions) = 88, "UNPACK";
    ReduceMin(ReducerOptions) = 89, "REDUCE_MIN";
    FloorDiv = 90, "FLOOR_DIV";
    ReduceAny(ReducerOptions) = 91, "REDUCE_ANY";
    Square = 92, "SQUARE";
    ZerosLike = 93, "ZEROS_LIKE";
    Fill = 94, "FILL";
    FloorMod = 95, "FLOOR_MOD";
    Range = 96, "RANGE";
    ResizeNearestNeighbor(ResizeOptions) = 97, "RESIZE_NEAREST_NEIGHBOR";
    LeakyRelu(LeakyReluOptions) = 98, "LEAKY_RELU";
    SquaredDifference = 99, "SQUARED_DIFFERENCE";
    MirrorPad(MirrorPadOptions) = 100, "MIRROR_PAD";
    Abs = 101, "ABS";
    SplitV(SplitOptions) = 102, "SPLIT_V";
    Unique(UniqueOptions) = 103, "UNIQUE";
    Ceil = 104, "CEIL";
    ReverseV2 = 105, "REVERSE_V2";
    AddN = 106, "ADD_N";
    GatherNd = 107, "GATHER_ND";
    Cos = 108, "COS";
    Where = 109, "WHERE";
    Rank = 110, "RANK";
    Elu = 111, "ELU";
    ReverseSequence(ReverseSequenceOptions) = 112, "REVERSE_SEQUENCE";
    MatrixDiag = 113, "MATRIX_DIAG";
    Quantize = 114, "QUANTIZE";
    MatrixSetDiag = 115, "MATRIX_SET_DIAG";
    Round = 116, "ROUND";
    HardSwish = 117, "HARD_SWISH";
    If(IfOptions) = 118, "IF";
    While(WhileOptions) = 119, "WHILE";
    NonMaxSuppressionV4 = 120, "NON_MAX_SUPPRESSION_V4";
    NonMaxSuppressionV5 = 121, "NON_MAX_SUPPRESSION_V5";
    ScatterNd = 122, "SCATTER_ND";
    SelectV2 = 123, "SELECT_V2";
    Densify = 124, "DENSIFY";
    SegmentSum = 125, "SEGMENT_SUM";
    BatchMatMul(BatchMatMulOptions) = 126, "BATCH_MATMUL";
    Cumsum(CumsumOptions) = 128, "CUMSUM";
    CallOnce(CallOptions) = 129, "CALL_ONCE";
    BroadcastTo = 130, "BROADCAST_TO";
    Rfft2d = 131, "RFFT2D";
    Conv3d(Conv3dOptions) = 132, "CONV_3D";
    Imag = 133, "IMAG";
    Real = 134, "REAL";
    ComplexAbs = 135, "COMPLEX_ABS";
    Hashtable(HashtableOptions) = 136, "HASHTABLE";
    HashtableFind = 137, "HASHTABLE_FIND";
    HashtableImport = 138, "HASHTABLE_IMPORT";
    HashtableSize = 139, "HASHTABLE_SIZE";
    ReduceAll(ReducerOptions) = 140, "REDUCE_ALL";
    Conv3dTranspose(Conv3dOptions) = 141, "CONV_3D_TRANSPOSE";
    VarHandle(VarHandleOptions) = 142, "VAR_HANDLE";
    ReadVariable = 143, "READ_VARIABLE";
    AssignVariable = 144, "ASSIGN_VARIABLE";
    BroadcastArgs = 145, "BROADCAST_ARGS";
    RandomStandardNormal(RandomOptions) = 146, "RANDOM_STANDARD_NORMAL";
    Bucketize(BucketizeOptions) = 147, "BUCKETIZE";
    RandomUniform(RandomOptions) = 148, "RANDOM_UNIFORM";
    Multinomial(RandomOptions) = 149, "MULTINOMIAL";
    Gelu(GeluOptions) = 150, "GELU";
    DynamicUpdateSlice = 151, "DYNAMIC_UPDATE_SLICE";
    Relu0To1 = 152, "RELU_0_TO_1";
    UnsortedSegmentProd = 153, "UNSORTED_SEGMENT_PROD";
    UnsortedSegmentMax = 154, "UNSORTED_SEGMENT_MAX";
    UnsortedSegmentSum = 155, "UNSORTED_SEGMENT_SUM";
    Atan2 = 156, "ATAN2";
    UnsortedSegmentMin = 157, "UNSORTED_SEGMENT_MIN";
    Sign = 158, "SIGN";
    Bitcast = 159, "BITCAST";
    BitwiseXor = 160, "BITWISE_XOR";
    RightShift = 161, "RIGHT_SHIFT";
    StablehloComposite(CompositeOptions) = 206, "STABLEHLO_COMPOSITE";
    // Circle's own.
    InstanceNorm(InstanceNormOptions) = -2, "INSTANCE_NORM";
    BcqFullyConnected(BcqFullyConnectedOptions) = -3, "BCQ_FULLY_CONNECTED";
    BcqGather(BcqGatherOptions) = -4, "BCQ_GATHER";
    Gru(GruOptions) = -5, "GRU";
    RmsNorm(RmsNormOptions) = -6, "RMS_NORM";
    Rope(RopeOptions) = -7, "ROPE";
    RunModel(RunModelOptions) = -8, "RUN_MODEL";
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { code } => write!(f, "UNKNOWN({code})"),
            // The name comes from the file.
            Self::Custom(custom) => write!(f, "{}", custom.code.escape_debug()),
            op => f.write_str(op.name()),
        }
    }
}

/// Fused activation function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// None.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, -1), 1)`.
    ReluN1To1,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// Hyperbolic tangent.
    Tanh,
    /// The sign bit.
    SignBit,
    /// An unknown code.
    Unknown(i8),
}

/// Padding of window operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zero padding such that `output = ceil(input / stride)`; an odd pixel is at the bottom and
    /// right.
    #[default]
    Same,
    /// No padding: windows lie inside the input.
    Valid,
}

/// Options of MUL, DIV and L2_NORMALIZATION.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "a field of the schema")]
pub struct ActivationOptions {
    pub activation: Activation,
}

/// A custom operator: its name and options in a format of its own.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "fields of the schema")]
pub struct CustomOptions {
    pub code: String,
    pub options: Bytes,
}

impl PartialEq for CustomOptions {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && is_same(&self.options, &other.options)
    }
}

/// Whether the bytes are equal. Does not read bytes at the same address: constants and embedded
/// graphs of one file may be large.
pub(crate) fn is_same(mine: &Bytes, theirs: &Bytes) -> bool {
    mine.as_ptr_range() == theirs.as_ptr_range() || mine == theirs
}

/// Defines structs of options with the fields of the schema.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty $(= $default:expr)?,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "fields of the schema")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: options!(@default $ty $(, $default)?),)* }
            }
        }
    )*};
    (@default $ty:ty, $default:expr) => { $default };
    (@default $ty:ty) => { <$ty>::default() };
}

options! {
    /// Options of ADD and SUB.
    ArithmeticOptions {
        activation: Activation,
        /// For 16-bit integers: scales are powers of two.
        pot_scale_int16: bool = true,
    }
    /// Options of CONV_2D. Strides and dilations are in pixels.
    Conv2dOptions {
        padding: Padding,
        stride_w: i32,
        stride_h: i32,
        dilation_w: i32 = 1,
        dilation_h: i32 = 1,
        activation: Activation,
        /// Type of bias and accumulator for 16-bit activations, if stated.
        quantized_bias_type: Option<DType>,
    }
    /// Options of CONV_3D and CONV_3D_TRANSPOSE.
    Conv3dOptions {
        padding: Padding,
        stride_d: i32,
        stride_w: i32,
        stride_h: i32,
        dilation_d: i32 = 1,
        dilation_w: i32 = 1,
        dilation_h: i32 = 1,
        activation: Activation,
    }
    /// Options of DEPTHWISE_CONV_2D.
    DepthwiseConv2dOptions {
        padding: Padding,
        stride_w: i32,
        stride_h: i32,
        /// Output channels per input channel. Kernels derive it from the shapes instead.
        depth_multiplier: i32,
        dilation_w: i32 = 1,
        dilation_h: i32 = 1,
        activation: Activation,
    }
    /// Options of TRANSPOSE_CONV.
    TransposeConvOptions {
        padding: Padding,
        stride_w: i32,
        stride_h: i32,
        activation: Activation,
        /// Type of bias and accumulator for 16-bit activations, if stated.
        quantized_bias_type: Option<DType>,
    }
    /// Options of the pooling operators.
    Pool2dOptions {
        padding: Padding,
        stride_w: i32,
        stride_h: i32,
        filter_width: i32,
        filter_height: i32,
        activation: Activation,
    }
    /// Options of FULLY_CONNECTED.
    FullyConnectedOptions {
        activation: Activation,
        weights_format: WeightsFormat,
        /// Keeps the input's leading dimensions instead of flattening them.
        keep_num_dims: bool,
        asymmetric_quantize_inputs: bool,
        /// Type of bias and accumulator for 16-bit activations, if stated.
        quantized_bias_type: Option<DType>,
    }
    /// Options of SOFTMAX.
    SoftmaxOptions { beta: f32, }
    /// Options of CONCATENATION.
    ConcatenationOptions { axis: i32, activation: Activation, }
    /// Options of LOCAL_RESPONSE_NORMALIZATION.
    LocalResponseNormalizationOptions { radius: i32, bias: f32, alpha: f32, beta: f32, }
    /// Options of LSTM.
    LstmOptions {
        activation: Activation,
        cell_clip: f32,
        proj_clip: f32,
        /// The basic kernel (5 inputs) instead of the full kernel.
        basic: bool,
        asymmetric_quantize_inputs: bool,
    }
    /// Options of UNIDIRECTIONAL_SEQUENCE_LSTM.
    SequenceLstmOptions {
        activation: Activation,
        cell_clip: f32,
        proj_clip: f32,
        time_major: bool,
        asymmetric_quantize_inputs: bool,
        diagonal_recurrent_tensors: bool,
    }
    /// Options of BIDIRECTIONAL_SEQUENCE_LSTM.
    BidirectionalSequenceLstmOptions {
        activation: Activation,
        cell_clip: f32,
        proj_clip: f32,
        merge_outputs: bool,
        time_major: bool = true,
        asymmetric_quantize_inputs: bool,
    }
    /// Options of RNN.
    RnnOptions { activation: Activation, asymmetric_quantize_inputs: bool, }
    /// Options of UNIDIRECTIONAL_SEQUENCE_RNN.
    SequenceRnnOptions {
        time_major: bool,
        activation: Activation,
        asymmetric_quantize_inputs: bool,
    }
    /// Options of BIDIRECTIONAL_SEQUENCE_RNN.
    BidirectionalSequenceRnnOptions {
        time_major: bool,
        activation: Activation,
        merge_outputs: bool,
        asymmetric_quantize_inputs: bool,
    }
    /// Options of LSH_PROJECTION.
    LshProjectionOptions {
        /// The schema's code: 0 unknown, 1 sparse, 2 dense.
        kind: i8,
    }
    /// Options of CONCAT_EMBEDDINGS.
    ConcatEmbeddingsOptions {
        num_channels: i32,
        num_columns_per_channel: Vec<i32>,
        embedding_dim_per_channel: Vec<i32>,
    }
    /// Options of SKIP_GRAM.
    SkipGramOptions { ngram_size: i32, max_skip_size: i32, include_all_ngrams: bool, }
    /// Options of EMBEDDING_LOOKUP_SPARSE.
    EmbeddingLookupSparseOptions {
        /// The schema's code: 0 sum, 1 mean, 2 sum divided by the root of the count.
        combiner: i8,
    }
    /// Options of SVDF.
    SvdfOptions { rank: i32, activation: Activation, asymmetric_quantize_inputs: bool, }
    /// Options of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.
    ResizeOptions { align_corners: bool, half_pixel_centers: bool, }
    /// Options of CALL and CALL_ONCE.
    CallOptions { subgraph: SubgraphId, }
    /// Options of IF.
    IfOptions { then_subgraph: SubgraphId, else_subgraph: SubgraphId, }
    /// Options of WHILE.
    WhileOptions { cond_subgraph: SubgraphId, body_subgraph: SubgraphId, }
    /// Options of RESHAPE. The second input, if present, takes precedence.
    ReshapeOptions { new_shape: Option<Vec<i32>>, }
    /// Options of SPACE_TO_DEPTH and DEPTH_TO_SPACE.
    BlockOptions { block_size: i32, }
    /// Options of GATHER.
    GatherOptions { axis: i32, batch_dims: i32, }
    /// Options of the reductions.
    ReducerOptions { keep_dims: bool, }
    /// Options of SQUEEZE. An empty list means all dimensions of size 1.
    SqueezeOptions { squeeze_dims: Vec<i32>, }
    /// Options of SPLIT and SPLIT_V.
    SplitOptions { num_splits: i32, }
    /// Options of STRIDED_SLICE. Bit i of a mask applies to entry i of the bounds.
    StridedSliceOptions {
        begin_mask: i32,
        end_mask: i32,
        ellipsis_mask: i32,
        new_axis_mask: i32,
        shrink_axis_mask: i32,
        /// `end` is relative to `begin`.
        offset: bool,
    }
    /// Options of CAST.
    CastOptions { from: DType = DType::F32, to: DType = DType::F32, }
    /// Options of ARG_MAX and ARG_MIN.
    ArgMinMaxOptions { output_type: DType = DType::F32, }
    /// Options of SPARSE_TO_DENSE.
    SparseToDenseOptions { validate_indices: bool, }
    /// Options of SHAPE.
    ShapeOptions { out_type: DType = DType::F32, }
    /// Options of FAKE_QUANT.
    FakeQuantOptions { min: f32, max: f32, num_bits: i32, narrow_range: bool, }
    /// Options of PACK.
    PackOptions { values_count: i32, axis: i32, }
    /// Options of UNPACK.
    UnpackOptions { num: i32, axis: i32, }
    /// Options of ONE_HOT.
    OneHotOptions { axis: i32, }
    /// Options of LEAKY_RELU.
    LeakyReluOptions { alpha: f32, }
    /// Options of MIRROR_PAD.
    MirrorPadOptions {
        /// Mirrors including the border (SYMMETRIC) instead of excluding it (REFLECT).
        symmetric: bool,
    }
    /// Options of UNIQUE.
    UniqueOptions { idx_out_type: DType = DType::I32, }
    /// Options of REVERSE_SEQUENCE.
    ReverseSequenceOptions { seq_dim: i32, batch_dim: i32, }
    /// Options of BATCH_MATMUL (`adjoint_lhs`, `adjoint_rhs` in Circle).
    BatchMatMulOptions { adj_x: bool, adj_y: bool, asymmetric_quantize_inputs: bool, }
    /// Options of CUMSUM.
    CumsumOptions { exclusive: bool, reverse: bool, }
    /// Options of HASHTABLE.
    HashtableOptions { table_id: i32, key_dtype: DType = DType::F32, value_dtype: DType = DType::F32, }
    /// Options of VAR_HANDLE.
    VarHandleOptions { container: String, shared_name: String, }
    /// Options of the random operators.
    RandomOptions { seed: i64, seed2: i64, }
    /// Options of BUCKETIZE.
    BucketizeOptions { boundaries: Vec<f32>, }
    /// Options of GELU.
    GeluOptions {
        /// The approximation by tanh instead of erf.
        approximate: bool,
    }
    /// Options of STABLEHLO_COMPOSITE.
    CompositeOptions {
        name: String,
        decomposition_subgraph: SubgraphId,
        /// FlexBuffer map.
        attributes: Bytes,
        version: i32,
    }
    /// Options of Circle's INSTANCE_NORM.
    InstanceNormOptions { epsilon: f32, activation: Activation, }
    /// Options of Circle's BCQ_FULLY_CONNECTED.
    BcqFullyConnectedOptions { weights_hidden_size: i32, activation: Activation, }
    /// Options of Circle's BCQ_GATHER.
    BcqGatherOptions { input_hidden_size: i32, axis: i32, }
    /// Options of Circle's GRU.
    GruOptions { activation: Activation, return_sequences: bool, time_major: bool, }
    /// Options of Circle's RMS_NORM.
    RmsNormOptions { epsilon: f32, }
    /// Options of Circle's ROPE.
    RopeOptions {
        /// Interleaved pairs (GPT-J) instead of split halves (GPT-NeoX).
        interleaved: bool,
    }
    /// Options of Circle's RUN_MODEL. The location is never opened.
    RunModelOptions { location: String, signature: String, }
}

/// Layout of FULLY_CONNECTED weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WeightsFormat {
    /// Row-major `[outputs, inputs]`.
    #[default]
    Default,
    /// TFLite's SHUFFLED4x16INT8.
    Shuffled4x16Int8,
    /// Circle's SHUFFLED16x1FLOAT32.
    Shuffled16x1Float32,
    /// An unknown code.
    Unknown(i8),
}

impl fmt::Display for WeightsFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("DEFAULT"),
            Self::Shuffled4x16Int8 => f.write_str("SHUFFLED4x16INT8"),
            Self::Shuffled16x1Float32 => f.write_str("SHUFFLED16x1FLOAT32"),
            Self::Unknown(code) => write!(f, "{code}"),
        }
    }
}
