//! Why an operator stays with the interpreter.

use std::fmt;

use xnn_model::{DType, Tensor, TensorId};

/// The tensor that a [`WhyNot`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTensor {
    /// Index in the subgraph.
    pub id: TensorId,
    /// Name in the file.
    pub name: String,
}

impl NamedTensor {
    /// Refers to a tensor of a subgraph.
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

/// Writes [`WhyNot`] with a stable code and a sentence for each reason.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })? = $code:literal, $format:literal;)*) => {
        /// The reason for which an operator is not delegated.
        ///
        /// `Display` is one sentence for people; [`WhyNot::code`] is stable and
        /// for programs.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum WhyNot {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $ty,)* })?,)*
        }

        impl WhyNot {
            /// Every code there is, for the documentation.
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
    /// No rule for the operator.
    UnsupportedOperator { /** Its name. */ op: String } = "unsupported-operator",
        "{op} has no XNNPACK counterpart";
    /// The user said so.
    Disabled { /** Its name. */ op: String } = "disabled", "{op} is disabled by an option";
    /// Fewer or more inputs than the operator can have here.
    InputCount { /** How many there are. */ found: usize, /** What is allowed. */ expected: String } = "input-count",
        "has {found} inputs where {expected} are supported";
    /// Fewer or more outputs than the operator can have here.
    OutputCount { /** How many there are. */ found: usize, /** What is allowed. */ expected: String } = "output-count",
        "has {found} outputs where {expected} are supported";
    /// An attribute has a value that XNNPACK does not have.
    Attribute { /** Its name. */ name: &'static str, /** Its value. */ value: String, /** What is allowed. */ expected: &'static str } = "attribute",
        "{name} is {value}, supported: {expected}";
    /// Element types that XNNPACK does not have for this operator.
    Type { /** Which tensor. */ tensor: NamedTensor, /** Its type. */ dtype: DType, /** What is allowed. */ expected: &'static str } = "type",
        "{tensor} is {dtype}, supported: {expected}";
    /// Two tensors must have the same type and do not.
    TypeMismatch { /** One. */ a: NamedTensor, /** The other. */ b: NamedTensor } = "type-mismatch",
        "{a} and {b} differ in type";
    /// The file does not say the shape, and it cannot be inferred.
    UnknownShape { /** Which tensor. */ tensor: NamedTensor } = "unknown-shape",
        "the shape of {tensor} is not known before the run";
    /// A rank that XNNPACK or the operator does not take.
    Rank { /** Which tensor. */ tensor: NamedTensor, /** Its rank. */ rank: usize, /** What is allowed. */ expected: &'static str } = "rank",
        "{tensor} has rank {rank}, supported: {expected}";
    /// A shape that contradicts the operator.
    Shape { /** Which tensor. */ tensor: NamedTensor, /** What is wrong. */ expected: String } = "shape",
        "{tensor}: {expected}";
    /// A tensor without elements.
    Empty { /** Which tensor. */ tensor: NamedTensor } = "empty", "{tensor} has no elements";
    /// Must be known before the run and is not.
    NotConstant { /** Which tensor. */ tensor: NamedTensor } = "not-constant",
        "{tensor} is not constant";
    /// Bytes that cannot be used as they are.
    Unusable { /** Which tensor. */ tensor: NamedTensor, /** Why. */ why: String } = "unusable",
        "{tensor}: {why}";
    /// An 8-bit tensor without scale.
    NotQuantized { /** Which tensor. */ tensor: NamedTensor } = "not-quantized",
        "{tensor} has an integer type but no scale and zero point";
    /// A kind of quantization that XNNPACK does not have here.
    Quantization { /** Which tensor. */ tensor: NamedTensor, /** What is allowed. */ expected: &'static str } = "quantization",
        "the quantization of {tensor} is not supported here: {expected}";
    /// A scale that is zero, negative, denormal, infinite or NaN.
    Scale { /** Which tensor. */ tensor: NamedTensor, /** The scale. */ scale: f32 } = "scale",
        "{tensor} has the scale {scale}, which is not a positive normal number";
    /// A zero point outside the range of the type, or not where XNNPACK wants it.
    ZeroPoint { /** Which tensor. */ tensor: NamedTensor, /** The zero point. */ zero_point: i64, /** What is allowed. */ expected: &'static str } = "zero-point",
        "{tensor} has the zero point {zero_point}, supported: {expected}";
    /// Scales whose ratio XNNPACK's fixed-point arithmetic cannot express.
    ScaleRatio { /** The formula. */ what: &'static str, /** Its value. */ value: f32, /** What is allowed. */ expected: &'static str } = "scale-ratio",
        "{what} is {value}, supported: {expected}";
    /// An operator that only moves data between tensors of different
    /// quantization. Interpreters ignore the difference, so a conversion would
    /// change the result.
    QuantizationDiffers { /** One. */ a: NamedTensor, /** The other. */ b: NamedTensor } = "quantization-differs",
        "{a} and {b} must have the same scale and zero point";
    /// The result is constant, but operators that stay with the interpreter read it.
    ReadOutside { /** Which tensor. */ tensor: NamedTensor } = "read-outside",
        "{tensor} is constant, but operators that are not delegated read it";
    /// The operator holds a graph that cannot be used.
    StoredGraph { /** What is wrong. */ message: String } = "stored-graph",
        "the graph that it holds cannot be used: {message}";
    /// XNNPACK refused the operator when it was created.
    CompileFailed { /** What XNNPACK said. */ message: String } = "compile-failed",
        "XNNPACK refused it: {message}";
    /// The partition spares less than moving its border costs, or is smaller than the options allow.
    NotWorthIt { /** Multiply-accumulates of the partition. */ macs: u64, /** Elements that it computes or moves. */ work: u64, /** Bytes at its border. */ boundary_bytes: u64 } = "not-worth-it",
        "its partition would have {macs} MACs and {work} elements to compute or move for {boundary_bytes} bytes at the border";
    /// More partitions than the options allow, and this one is among the smaller.
    TooManyPartitions { /** The limit. */ limit: usize } = "too-many-partitions",
        "its partition is not among the {limit} largest";
}
