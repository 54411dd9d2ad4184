//! Reasons for which operators are not delegated.

use std::fmt;

use xnn_model::{DType, Tensor, TensorId};

/// A tensor named in a [`WhyNot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTensor {
    /// Index in the subgraph.
    pub id: TensorId,
    /// Name in the file.
    pub name: String,
}

impl NamedTensor {
    /// Names a tensor of a subgraph.
    #[must_use]
    pub fn new(id: TensorId, tensor: &Tensor) -> Self {
        Self { id, name: tensor.name.clone() }
    }
}

impl fmt::Display for NamedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor {} ({:?})", self.id, self.name)
    }
}

/// Defines [`WhyNot`] with a stable code and a sentence for each reason.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })? = $code:literal, $format:literal;)*) => {
        /// The reason for which an operator is not delegated.
        ///
        /// `Display` writes one sentence; [`WhyNot::code`] is a stable name for programs.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum WhyNot {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $ty,)* })?,)*
        }

        impl WhyNot {
            /// All codes.
            pub const CODES: &[&str] = &[$($code),*];

            /// A stable name for programs.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $code,)*
                }
            }
        }

        impl fmt::Display for WhyNot {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),* })? => write!(f, $format),)*
                }
            }
        }
    };
}

reasons! {
    /// The partitioner has no rule for the operator.
    UnsupportedOperator { /** Name of the operator. */ op: String } = "unsupported-operator",
        "{op} has no XNNPACK counterpart";
    /// An option disables the operator.
    Disabled { /** Name of the operator. */ op: String } = "disabled", "{op} is disabled by an option";
    /// A number of inputs that is not supported.
    InputCount { /** Number in the model. */ found: usize, /** Supported values. */ expected: String } = "input-count",
        "inputs: expected {expected}, found {found}";
    /// A number of outputs that is not supported.
    OutputCount { /** Number in the model. */ found: usize, /** Supported values. */ expected: String } = "output-count",
        "outputs: expected {expected}, found {found}";
    /// An attribute has a value that XNNPACK does not support.
    Attribute { /** Name of the attribute. */ name: &'static str, /** Value of the attribute. */ value: String, /** Supported values. */ expected: &'static str } = "attribute",
        "{name} is {value}, supported: {expected}";
    /// An element type that XNNPACK does not support for the operator.
    Type { /** The tensor. */ tensor: NamedTensor, /** Type of the tensor. */ dtype: DType, /** Supported values. */ expected: &'static str } = "type",
        "{tensor} is {dtype}, supported: {expected}";
    /// Two tensors must have the same type, but differ.
    TypeMismatch { /** One tensor. */ a: NamedTensor, /** The other tensor. */ b: NamedTensor } = "type-mismatch",
        "{a} and {b} differ in type";
    /// The file does not contain the shape, and it cannot be inferred.
    UnknownShape { /** The tensor. */ tensor: NamedTensor } = "unknown-shape",
        "the shape of {tensor} is not known before the run";
    /// A rank that XNNPACK or the operator does not support.
    Rank { /** The tensor. */ tensor: NamedTensor, /** Rank of the tensor. */ rank: usize, /** Supported values. */ expected: &'static str } = "rank",
        "{tensor} has rank {rank}, supported: {expected}";
    /// A shape that contradicts the operator.
    Shape { /** The tensor. */ tensor: NamedTensor, /** Expected shape, or the contradiction. */ expected: String } = "shape",
        "{tensor}: {expected}";
    /// A tensor without elements.
    Empty { /** The tensor. */ tensor: NamedTensor } = "empty", "{tensor} has no elements";
    /// A value that must be known before the run, but is not.
    NotConstant { /** The tensor. */ tensor: NamedTensor } = "not-constant",
        "{tensor} is not constant";
    /// A tensor whose bytes cannot be used.
    Unusable { /** The tensor. */ tensor: NamedTensor, /** The problem. */ why: String } = "unusable",
        "{tensor}: {why}";
    /// An 8-bit tensor without a scale.
    NotQuantized { /** The tensor. */ tensor: NamedTensor } = "not-quantized",
        "{tensor} has an integer type but no scale and zero point";
    /// A kind of quantization that XNNPACK does not support for the operator.
    Quantization { /** The tensor. */ tensor: NamedTensor, /** Supported values. */ expected: &'static str } = "quantization",
        "the quantization of {tensor} is not supported, expected: {expected}";
    /// A scale that is zero, negative, subnormal, infinite or NaN.
    Scale { /** The tensor. */ tensor: NamedTensor, /** The scale. */ scale: f32 } = "scale",
        "{tensor} has the scale {scale}, which is not a positive normal number";
    /// A zero point outside the range that the type or XNNPACK allows.
    ZeroPoint { /** The tensor. */ tensor: NamedTensor, /** The zero point. */ zero_point: i64, /** Supported values. */ expected: &'static str } = "zero-point",
        "{tensor} has the zero point {zero_point}, supported: {expected}";
    /// Scales with a ratio that XNNPACK's fixed-point arithmetic cannot represent.
    ScaleRatio { /** Formula of the ratio. */ what: &'static str, /** Value of the ratio. */ value: f32, /** Supported values. */ expected: &'static str } = "scale-ratio",
        "{what} is {value}, supported: {expected}";
    /// An operator that only moves data between tensors of different quantization. Interpreters
    /// ignore the difference, so that a conversion would change the result.
    QuantizationDiffers { /** One tensor. */ a: NamedTensor, /** The other tensor. */ b: NamedTensor } = "quantization-differs",
        "{a} and {b} must have the same scale and zero point";
    /// The result is constant, but operators that are not delegated read it.
    ReadOutside { /** The tensor. */ tensor: NamedTensor } = "read-outside",
        "{tensor} is constant, but operators that are not delegated read it";
    /// The operator embeds a graph that cannot be used.
    EmbeddedGraph { /** Error message. */ message: String } = "embedded-graph",
        "the embedded graph cannot be used: {message}";
    /// XNNPACK refused to create the operator.
    CompileFailed { /** XNNPACK's message. */ message: String } = "compile-failed",
        "XNNPACK refused the operator: {message}";
    /// The partition saves less work than its boundary copies cost, or is smaller than the options
    /// allow.
    NotWorthIt { /** Multiply-accumulates of the partition. */ macs: u64, /** Elements that the partition computes or moves. */ work: u64, /** Bytes of its boundary tensors. */ boundary_bytes: u64 } = "not-worth-it",
        "its partition would have {macs} MACs and {work} elements to compute or move for {boundary_bytes} bytes of boundary tensors";
    /// There are more partitions than the options allow, and this one is not among the largest.
    TooManyPartitions { /** The limit. */ limit: usize } = "too-many-partitions",
        "its partition is not among the {limit} largest";
}
