//! Options of builtin operators, from TFLite's C structures.
//!
//! The structures have only members that all supported interpreters have. Interpreters set these
//! members for every version of an operator, and their own kernels rely on it.

use std::ffi::{c_char, c_int, c_void};

use xnn_model::Op;
use xnn_model::op::{
    Activation, ActivationOptions, ArgMinMaxOptions, ArithmeticOptions, BatchMatMulOptions,
    BidirectionalSequenceLstmOptions, BidirectionalSequenceRnnOptions, BlockOptions, CallOptions,
    CastOptions, CompositeOptions, ConcatenationOptions, Conv2dOptions, Conv3dOptions,
    CumsumOptions, DepthwiseConv2dOptions, FakeQuantOptions, FullyConnectedOptions, GatherOptions,
    GeluOptions, IfOptions, LeakyReluOptions, LocalResponseNormalizationOptions, LstmOptions,
    MirrorPadOptions, OneHotOptions, PackOptions, Padding, Pool2dOptions, ReducerOptions,
    ReshapeOptions, ResizeOptions, ReverseSequenceOptions, RnnOptions, SequenceLstmOptions,
    SequenceRnnOptions, ShapeOptions, SoftmaxOptions, SplitOptions, SqueezeOptions,
    StridedSliceOptions, SvdfOptions, TransposeConvOptions, UnpackOptions, WeightsFormat,
    WhileOptions,
};

use crate::abi::{c_struct, dtype, text};
use crate::constants::ModelBytes;

c_struct! {
    ActivationParams: 4 { activation @ 0: c_int, }
    BatchMatMulParams: 3 {
        adj_x @ 0: u8,
        adj_y @ 1: u8,
        asymmetric_quantize_inputs @ 2: u8,
    }
    BidirectionalLstmParams: 16 {
        activation @ 0: c_int,
        cell_clip @ 4: f32,
        proj_clip @ 8: f32,
        merge_outputs @ 12: u8,
        time_major @ 13: u8,
        asymmetric_quantize_inputs @ 14: u8,
    }
    BidirectionalRnnParams: 12 {
        time_major @ 0: u8,
        activation @ 4: c_int,
        merge_outputs @ 8: u8,
        asymmetric_quantize_inputs @ 9: u8,
    }
    BoolParams: 1 { value @ 0: u8, }
    /// Name and attributes point into the model. Interpreters without `version` have zero in its
    /// place.
    CompositeParams: 32 {
        name @ 0: *const c_char,
        subgraph_index @ 8: i32,
        version @ 12: i32,
        attributes @ 16: *const c_void,
        attributes_size @ 24: usize,
    }
    ConcatenationParams: 8 { axis @ 0: c_int, activation @ 4: c_int, }
    Conv3dParams: 32 {
        padding @ 0: c_int,
        stride_width @ 4: c_int,
        stride_height @ 8: c_int,
        stride_depth @ 12: c_int,
        dilation_width_factor @ 16: c_int,
        dilation_height_factor @ 20: c_int,
        dilation_depth_factor @ 24: c_int,
        activation @ 28: c_int,
    }
    ConvParams: 24 {
        padding @ 0: c_int,
        stride_width @ 4: c_int,
        stride_height @ 8: c_int,
        activation @ 12: c_int,
        dilation_width_factor @ 16: c_int,
        dilation_height_factor @ 20: c_int,
    }
    CumsumParams: 2 { exclusive @ 0: u8, reverse @ 1: u8, }
    DepthwiseConvParams: 28 {
        padding @ 0: c_int,
        stride_width @ 4: c_int,
        stride_height @ 8: c_int,
        depth_multiplier @ 12: c_int,
        activation @ 16: c_int,
        dilation_width_factor @ 20: c_int,
        dilation_height_factor @ 24: c_int,
    }
    FakeQuantParams: 16 {
        min @ 0: f32,
        max @ 4: f32,
        num_bits @ 8: c_int,
        narrow_range @ 12: u8,
    }
    FloatParams: 4 { value @ 0: f32, }
    FullyConnectedParams: 12 {
        activation @ 0: c_int,
        weights_format @ 4: c_int,
        keep_num_dims @ 8: u8,
        asymmetric_quantize_inputs @ 9: u8,
    }
    IntParams: 4 { value @ 0: c_int, }
    /// Two integers: GATHER, PACK, UNPACK, CAST, REVERSE_SEQUENCE, IF, WHILE.
    IntPairParams: 8 { first @ 0: c_int, second @ 4: c_int, }
    LocalResponseNormParams: 16 {
        radius @ 0: c_int,
        bias @ 4: f32,
        alpha @ 8: f32,
        beta @ 12: f32,
    }
    LstmParams: 20 {
        activation @ 0: c_int,
        cell_clip @ 4: f32,
        proj_clip @ 8: f32,
        kernel_type @ 12: c_int,
        asymmetric_quantize_inputs @ 16: u8,
    }
    PoolParams: 24 {
        padding @ 0: c_int,
        stride_width @ 4: c_int,
        stride_height @ 8: c_int,
        filter_width @ 12: c_int,
        filter_height @ 16: c_int,
        activation @ 20: c_int,
    }
    /// `dims` has 8 elements, of which `count` are used.
    DimsParams: 36 { dims @ 0: [i32; 8], count @ 32: c_int, }
    ResizeParams: 2 { align_corners @ 0: u8, half_pixel_centers @ 1: u8, }
    RnnParams: 8 { activation @ 0: c_int, asymmetric_quantize_inputs @ 4: u8, }
    SequenceLstmParams: 16 {
        activation @ 0: c_int,
        cell_clip @ 4: f32,
        proj_clip @ 8: f32,
        time_major @ 12: u8,
        asymmetric_quantize_inputs @ 13: u8,
        diagonal_recurrent_tensors @ 14: u8,
    }
    SequenceRnnParams: 12 {
        time_major @ 0: u8,
        activation @ 4: c_int,
        asymmetric_quantize_inputs @ 8: u8,
    }
    StridedSliceParams: 24 {
        begin_mask @ 0: c_int,
        end_mask @ 4: c_int,
        ellipsis_mask @ 8: c_int,
        new_axis_mask @ 12: c_int,
        shrink_axis_mask @ 16: c_int,
        offset @ 20: u8,
    }
    SvdfParams: 12 {
        rank @ 0: c_int,
        activation @ 4: c_int,
        asymmetric_quantize_inputs @ 8: u8,
    }
    TransposeConvParams: 16 {
        padding @ 0: c_int,
        stride_width @ 4: c_int,
        stride_height @ 8: c_int,
        activation @ 12: c_int,
    }
}

/// Defines the function that converts structures to options, from a table of operators, TFLite's
/// structure for each, and the conversion.
macro_rules! options {
    ($($($variant:ident)|+, $params:ty: |$p:pat_param| $options:expr;)*) => {
        /// Returns the operator with the options in `data`; `None` for operators without options or
        /// with unknown ones.
        ///
        /// # Safety
        /// `data` is what a TFLite runtime made for this operator.
        unsafe fn with_options(op: &Op, data: *const c_void) -> Option<Op> {
            Some(match op {
                $($(Op::$variant(_) => {
                    // SAFETY: the table has TFLite's structure for the operator, or its
                    // beginning.
                    let $p = unsafe { data.cast::<$params>().as_ref() }?;
                    Op::$variant($options)
                })+)*
                _ => return None,
            })
        }

        /// Whether TFLite creates a structure for this operator.
        fn takes_options(op: &Op) -> bool {
            matches!(op, $($(Op::$variant(_))|+)|+)
        }
    };
}

options! {
    Add | Sub, ActivationParams: |p| ArithmeticOptions {
        activation: activation(p.activation), ..ArithmeticOptions::default()
    };
    ArgMax | ArgMin, IntParams: |p| ArgMinMaxOptions { output_type: dtype(p.value) };
    AveragePool2d | L2Pool2d | MaxPool2d, PoolParams: |p| Pool2dOptions {
        padding: padding(p.padding)?,
        stride_w: p.stride_width,
        stride_h: p.stride_height,
        filter_width: p.filter_width,
        filter_height: p.filter_height,
        activation: activation(p.activation),
    };
    BatchMatMul, BatchMatMulParams: |p| BatchMatMulOptions {
        adj_x: p.adj_x != 0,
        adj_y: p.adj_y != 0,
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    BidirectionalSequenceLstm, BidirectionalLstmParams: |p| BidirectionalSequenceLstmOptions {
        activation: activation(p.activation),
        cell_clip: p.cell_clip,
        proj_clip: p.proj_clip,
        merge_outputs: p.merge_outputs != 0,
        time_major: p.time_major != 0,
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    BidirectionalSequenceRnn, BidirectionalRnnParams: |p| BidirectionalSequenceRnnOptions {
        time_major: p.time_major != 0,
        activation: activation(p.activation),
        merge_outputs: p.merge_outputs != 0,
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    Call | CallOnce, IntParams: |p| CallOptions { subgraph: index(p.value)? };
    Cast, IntPairParams: |p| CastOptions { from: dtype(p.first), to: dtype(p.second) };
    Concatenation, ConcatenationParams: |p| ConcatenationOptions {
        axis: p.axis, activation: activation(p.activation),
    };
    Conv2d, ConvParams: |p| Conv2dOptions {
        padding: padding(p.padding)?,
        stride_w: p.stride_width,
        stride_h: p.stride_height,
        dilation_w: p.dilation_width_factor,
        dilation_h: p.dilation_height_factor,
        activation: activation(p.activation),
        quantized_bias_type: None,
    };
    Conv3d | Conv3dTranspose, Conv3dParams: |p| Conv3dOptions {
        padding: padding(p.padding)?,
        stride_d: p.stride_depth,
        stride_w: p.stride_width,
        stride_h: p.stride_height,
        dilation_d: p.dilation_depth_factor,
        dilation_w: p.dilation_width_factor,
        dilation_h: p.dilation_height_factor,
        activation: activation(p.activation),
    };
    Cumsum, CumsumParams: |p| CumsumOptions { exclusive: p.exclusive != 0, reverse: p.reverse != 0 };
    DepthToSpace | SpaceToDepth, IntParams: |p| BlockOptions { block_size: p.value };
    DepthwiseConv2d, DepthwiseConvParams: |p| DepthwiseConv2dOptions {
        padding: padding(p.padding)?,
        stride_w: p.stride_width,
        stride_h: p.stride_height,
        depth_multiplier: p.depth_multiplier,
        dilation_w: p.dilation_width_factor,
        dilation_h: p.dilation_height_factor,
        activation: activation(p.activation),
    };
    Div | L2Normalization | Mul, ActivationParams: |p| ActivationOptions {
        activation: activation(p.activation),
    };
    FakeQuant, FakeQuantParams: |p| FakeQuantOptions {
        min: p.min, max: p.max, num_bits: p.num_bits, narrow_range: p.narrow_range != 0,
    };
    FullyConnected, FullyConnectedParams: |p| FullyConnectedOptions {
        activation: activation(p.activation),
        weights_format: match p.weights_format {
            0 => WeightsFormat::Default,
            1 => WeightsFormat::Shuffled4x16Int8,
            _ => return None,
        },
        keep_num_dims: p.keep_num_dims != 0,
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
        quantized_bias_type: None,
    };
    Gather, IntPairParams: |p| GatherOptions { axis: p.first, batch_dims: p.second };
    Gelu, BoolParams: |p| GeluOptions { approximate: p.value != 0 };
    If, IntPairParams: |p| IfOptions {
        then_subgraph: index(p.first)?, else_subgraph: index(p.second)?,
    };
    LeakyRelu, FloatParams: |p| LeakyReluOptions { alpha: p.value };
    LocalResponseNormalization, LocalResponseNormParams: |p| LocalResponseNormalizationOptions {
        radius: p.radius, bias: p.bias, alpha: p.alpha, beta: p.beta,
    };
    Lstm, LstmParams: |p| LstmOptions {
        activation: activation(p.activation),
        cell_clip: p.cell_clip,
        proj_clip: p.proj_clip,
        basic: p.kernel_type == 1,
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    Mean | ReduceAll | ReduceAny | ReduceMax | ReduceMin | ReduceProd | Sum, BoolParams:
        |p| ReducerOptions { keep_dims: p.value != 0 };
    MirrorPad, IntParams: |p| MirrorPadOptions {
        symmetric: match p.value {
            1 => false,
            2 => true,
            _ => return None,
        },
    };
    OneHot, IntParams: |p| OneHotOptions { axis: p.value };
    Pack, IntPairParams: |p| PackOptions { values_count: p.first, axis: p.second };
    Reshape, DimsParams: |p| ReshapeOptions {
        new_shape: Some(p.used()?.to_vec()).filter(|dims| !dims.is_empty()),
    };
    ResizeBilinear | ResizeNearestNeighbor, ResizeParams: |p| ResizeOptions {
        align_corners: p.align_corners != 0, half_pixel_centers: p.half_pixel_centers != 0,
    };
    ReverseSequence, IntPairParams: |p| ReverseSequenceOptions {
        seq_dim: p.first, batch_dim: p.second,
    };
    Rnn, RnnParams: |p| RnnOptions {
        activation: activation(p.activation),
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    Shape, IntParams: |p| ShapeOptions { out_type: dtype(p.value) };
    Softmax, FloatParams: |p| SoftmaxOptions { beta: p.value };
    Split | SplitV, IntParams: |p| SplitOptions { num_splits: p.value };
    StablehloComposite, CompositeParams: |p| CompositeOptions {
        name: text(p.name),
        decomposition_subgraph: index(p.subgraph_index)?,
        attributes: ModelBytes::view(p.attributes, p.attributes_size).unwrap_or_default(),
        version: p.version,
    };
    Squeeze, DimsParams: |p| SqueezeOptions { squeeze_dims: p.used()?.to_vec() };
    StridedSlice, StridedSliceParams: |p| StridedSliceOptions {
        begin_mask: p.begin_mask,
        end_mask: p.end_mask,
        ellipsis_mask: p.ellipsis_mask,
        new_axis_mask: p.new_axis_mask,
        shrink_axis_mask: p.shrink_axis_mask,
        offset: p.offset != 0,
    };
    Svdf, SvdfParams: |p| SvdfOptions {
        rank: p.rank,
        activation: activation(p.activation),
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    TransposeConv, TransposeConvParams: |p| TransposeConvOptions {
        padding: padding(p.padding)?,
        stride_w: p.stride_width,
        stride_h: p.stride_height,
        activation: activation(p.activation),
        ..TransposeConvOptions::default()
    };
    UnidirectionalSequenceLstm, SequenceLstmParams: |p| SequenceLstmOptions {
        activation: activation(p.activation),
        cell_clip: p.cell_clip,
        proj_clip: p.proj_clip,
        time_major: p.time_major != 0,
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
        diagonal_recurrent_tensors: p.diagonal_recurrent_tensors != 0,
    };
    UnidirectionalSequenceRnn, SequenceRnnParams: |p| SequenceRnnOptions {
        time_major: p.time_major != 0,
        activation: activation(p.activation),
        asymmetric_quantize_inputs: p.asymmetric_quantize_inputs != 0,
    };
    Unpack, IntPairParams: |p| UnpackOptions { num: p.first, axis: p.second };
    While, IntPairParams: |p| WhileOptions {
        cond_subgraph: index(p.first)?, body_subgraph: index(p.second)?,
    };
}

/// Returns the builtin operator with this code and the options in `data`. [`Op::Unknown`] if the
/// options are not known, so that defaults are never used instead.
///
/// # Safety
/// `data` is null, or what a TFLite runtime made for an operator with this code.
pub(crate) unsafe fn builtin(code: i32, data: *const c_void) -> Op {
    let unknown = Op::Unknown { code };
    match Op::from_code(code) {
        None => unknown,
        Some(op) if data.is_null() => {
            if takes_options(&op) {
                unknown
            } else {
                op
            }
        }
        // SAFETY: guaranteed by the caller.
        Some(op) => unsafe { with_options(&op, data) }.unwrap_or(unknown),
    }
}

impl DimsParams {
    fn used(&self) -> Option<&[i32]> {
        self.dims.get(..usize::try_from(self.count).ok()?)
    }
}

fn padding(code: c_int) -> Option<Padding> {
    match code {
        1 => Some(Padding::Same),
        2 => Some(Padding::Valid),
        _ => None,
    }
}

fn activation(code: c_int) -> Activation {
    match code {
        0 => Activation::None,
        1 => Activation::Relu,
        2 => Activation::ReluN1To1,
        3 => Activation::Relu6,
        4 => Activation::Tanh,
        5 => Activation::SignBit,
        // No code is greater than 6; codes that do not fit are unknown as well.
        other => Activation::Unknown(i8::try_from(other).unwrap_or(i8::MAX)),
    }
}

fn index(subgraph: c_int) -> Option<usize> {
    usize::try_from(subgraph).ok()
}
