//! The kernels, one file per operator family, and the table of operators.

mod activation;
mod arg;
mod arithmetic;
mod arrange;
mod audio;
mod binary;
mod compare;
mod concatenation;
mod conv;
mod conv_3d;
mod copy;
mod dense;
mod detection;
mod fft;
mod fully_connected;
mod functions;
mod gemm;
mod gru;
mod hash_table;
mod hybrid;
mod index;
mod lstm;
mod matmul;
mod mediapipe;
mod normalize;
mod order;
mod pad;
mod pool;
mod quantize;
mod random;
mod real_fft;
mod reduce;
mod resize;
mod rnn;
mod segment;
mod select;
mod shape;
mod softmax;
mod strides;
mod strings;
mod svdf;
mod table;
mod transpose_conv;
mod unary;
mod verify;
mod weights;

use xnn_model::Op;

use crate::operator::Prepare;

pub(crate) use strings::prepare;

/// Builtin operators, in alphabetical order.
const BUILTINS: &[(&str, Prepare)] = &[
    ("ABS", unary::abs),
    ("ADD", arithmetic::add),
    ("ADD_N", reduce::add_n),
    ("ARG_MAX", arg::min_max),
    ("ARG_MIN", arg::min_max),
    ("ATAN2", binary::atan2),
    ("AVERAGE_POOL_2D", pool::average),
    ("BATCH_MATMUL", matmul::prepare),
    ("BATCH_TO_SPACE_ND", pad::batch_to_space),
    ("BIDIRECTIONAL_SEQUENCE_LSTM", lstm::bidirectional),
    ("BIDIRECTIONAL_SEQUENCE_RNN", rnn::bidirectional),
    ("BITCAST", arrange::bitcast),
    ("BITWISE_XOR", binary::bitwise),
    ("BROADCAST_ARGS", shape::broadcast_args),
    ("BROADCAST_TO", arrange::broadcast_to),
    ("BUCKETIZE", select::bucketize),
    ("CAST", quantize::cast),
    ("CEIL", unary::ceil),
    ("COMPLEX_ABS", unary::complex),
    ("CONCATENATION", concatenation::prepare),
    ("CONV_2D", conv::prepare),
    ("CONV_3D", conv_3d::conv),
    ("CONV_3D_TRANSPOSE", conv_3d::transpose),
    ("COS", unary::cos),
    ("CUMSUM", reduce::cumsum),
    ("DENSIFY", shape::densify),
    ("DEPTHWISE_CONV_2D", conv::prepare),
    ("DEPTH_TO_SPACE", arrange::depth_to_space),
    ("DEQUANTIZE", quantize::dequantize),
    ("DIV", arithmetic::div),
    ("DYNAMIC_UPDATE_SLICE", index::dynamic_update_slice),
    ("ELU", unary::elu),
    ("EMBEDDING_LOOKUP", index::embedding_lookup),
    ("EQUAL", compare::compare),
    ("EXP", unary::exp),
    ("EXPAND_DIMS", arrange::reshape),
    ("FAKE_QUANT", unary::fake_quant),
    ("FILL", shape::fill),
    ("FLOOR", unary::floor),
    ("FLOOR_DIV", binary::floor_div),
    ("FLOOR_MOD", binary::floor_mod),
    ("FULLY_CONNECTED", fully_connected::prepare),
    ("GATHER", index::gather),
    ("GATHER_ND", index::gather_nd),
    ("GELU", activation::gelu),
    ("GREATER", compare::compare),
    ("GREATER_EQUAL", compare::compare),
    ("GRU", gru::prepare),
    ("HARD_SWISH", activation::hard_swish),
    ("HASHTABLE_FIND", hash_table::find),
    ("HASHTABLE_IMPORT", hash_table::import),
    ("HASHTABLE_LOOKUP", hash_table::lookup),
    ("HASHTABLE_SIZE", hash_table::size),
    ("IMAG", unary::complex),
    ("INSTANCE_NORM", normalize::instance),
    ("L2_NORMALIZATION", normalize::l2),
    ("L2_POOL_2D", pool::l2),
    ("LEAKY_RELU", activation::leaky_relu),
    ("LESS", compare::compare),
    ("LESS_EQUAL", compare::compare),
    ("LOCAL_RESPONSE_NORMALIZATION", normalize::local_response),
    ("LOG", unary::log),
    ("LOGICAL_AND", binary::logical),
    ("LOGICAL_NOT", unary::logical_not),
    ("LOGICAL_OR", binary::logical),
    ("LOGISTIC", activation::logistic),
    ("LOG_SOFTMAX", softmax::log_softmax),
    ("LSTM", lstm::prepare),
    ("MATRIX_DIAG", segment::matrix_diag),
    ("MATRIX_SET_DIAG", segment::matrix_set_diag),
    ("MAXIMUM", binary::maximum),
    ("MAX_POOL_2D", pool::max),
    ("MEAN", reduce::mean),
    ("MINIMUM", binary::minimum),
    ("MIRROR_PAD", pad::mirror_pad),
    ("MUL", arithmetic::mul),
    ("MULTINOMIAL", random::multinomial),
    ("NEG", unary::neg),
    ("NON_MAX_SUPPRESSION_V4", detection::suppression),
    ("NON_MAX_SUPPRESSION_V5", detection::suppression),
    ("NOT_EQUAL", compare::compare),
    ("ONE_HOT", index::one_hot),
    ("PACK", concatenation::pack),
    ("PAD", pad::pad),
    ("PADV2", pad::pad),
    ("POW", binary::pow),
    ("PRELU", activation::prelu),
    ("QUANTIZE", quantize::quantize),
    ("RANDOM_STANDARD_NORMAL", random::normal),
    ("RANDOM_UNIFORM", random::uniform),
    ("RANGE", shape::range),
    ("RANK", shape::rank),
    ("REAL", unary::complex),
    ("REDUCE_ALL", reduce::logical),
    ("REDUCE_ANY", reduce::logical),
    ("REDUCE_MAX", reduce::max),
    ("REDUCE_MIN", reduce::min),
    ("REDUCE_PROD", reduce::product),
    ("RELU", activation::relu),
    ("RELU6", activation::relu),
    ("RELU_0_TO_1", activation::relu),
    ("RELU_N1_TO_1", activation::relu),
    ("RESHAPE", arrange::reshape),
    ("RESIZE_BILINEAR", resize::bilinear),
    ("RESIZE_NEAREST_NEIGHBOR", resize::nearest),
    ("REVERSE_SEQUENCE", index::reverse_sequence),
    ("REVERSE_V2", arrange::reverse),
    ("RFFT2D", fft::rfft2d),
    ("RIGHT_SHIFT", binary::bitwise),
    ("RMS_NORM", normalize::rms),
    ("RNN", rnn::prepare),
    ("ROPE", normalize::rope),
    ("ROUND", unary::round),
    ("RSQRT", unary::rsqrt),
    ("SCATTER_ND", index::scatter_nd),
    ("SEGMENT_SUM", segment::sum),
    ("SELECT", select::select),
    ("SELECT_V2", select::select),
    ("SHAPE", shape::shape),
    ("SIGN", unary::sign),
    ("SIN", unary::sin),
    ("SLICE", index::slice),
    ("SOFTMAX", softmax::prepare),
    ("SPACE_TO_BATCH_ND", pad::space_to_batch),
    ("SPACE_TO_DEPTH", arrange::space_to_depth),
    ("SPARSE_TO_DENSE", shape::sparse_to_dense),
    ("SPLIT", arrange::split),
    ("SPLIT_V", arrange::split),
    ("SQRT", unary::sqrt),
    ("SQUARE", unary::square),
    ("SQUARED_DIFFERENCE", binary::squared_difference),
    ("SQUEEZE", arrange::reshape),
    ("STRIDED_SLICE", index::strided_slice),
    ("SUB", arithmetic::sub),
    ("SUM", reduce::sum),
    ("SVDF", svdf::prepare),
    ("TANH", activation::tanh),
    ("TILE", arrange::tile),
    ("TOPK_V2", select::top_k),
    ("TRANSPOSE", arrange::transpose),
    ("TRANSPOSE_CONV", transpose_conv::prepare),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm::prepare),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", rnn::prepare),
    ("UNIQUE", select::unique),
    ("UNPACK", arrange::unpack),
    ("UNSORTED_SEGMENT_MAX", segment::unsorted),
    ("UNSORTED_SEGMENT_MIN", segment::unsorted),
    ("UNSORTED_SEGMENT_PROD", segment::unsorted),
    ("UNSORTED_SEGMENT_SUM", segment::unsorted),
    ("WHERE", select::find),
    ("ZEROS_LIKE", unary::zeros_like),
];

/// Custom operators by their names, in alphabetical order.
const CUSTOMS: &[(&str, Prepare)] = &[
    ("AudioSpectrogram", audio::spectrogram),
    ("Convolution2DTransposeBias", transpose_conv::with_bias),
    ("MaxPoolingWithArgmax2D", mediapipe::max_pool),
    ("MaxUnpooling2D", mediapipe::max_unpool),
    ("Mfcc", audio::mfcc),
    ("NumericVerify", verify::numeric),
    ("TFLite_Detection_PostProcess", detection::post_process),
];

/// The kernel for an operator.
pub(crate) fn find(op: &Op) -> Option<Prepare> {
    let table = match op {
        Op::Custom(_) => CUSTOMS,
        _ => BUILTINS,
    };
    let index = table.binary_search_by_key(&op.name(), |(name, _)| name).ok()?;
    table.get(index).map(|(_, prepare)| *prepare)
}

/// Operators that create resources or access variables, which do not need a kernel.
const RESOURCES: [&str; 4] = ["ASSIGN_VARIABLE", "HASHTABLE", "READ_VARIABLE", "VAR_HANDLE"];

/// Names of the operators that have a kernel or use a resource: builtins, then customs. Control
/// operators are supported too, but not listed.
pub fn supported_operators() -> impl Iterator<Item = &'static str> {
    let kernels = |table: &'static [(&'static str, Prepare)]| table.iter().map(|(name, _)| *name);
    kernels(BUILTINS).chain(RESOURCES).chain(kernels(CUSTOMS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(BUILTINS.is_sorted_by_key(|(name, _)| name));
        assert!(CUSTOMS.is_sorted_by_key(|(name, _)| name));
    }
}
