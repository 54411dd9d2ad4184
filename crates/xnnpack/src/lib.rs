//! Safe, complete wrapper of XNNPACK's subgraph API.
//!
//! A [`Subgraph`] describes tensors and nodes. A [`Runtime`] is XNNPACK's compiled form of a
//! subgraph for given input shapes, and runs it. XNNPACK checks few of its arguments; this crate
//! checks the others, so that no safe call can make it read or write out of bounds.
//!
//! ```
//! use xnnpack::{
//!     AlignedBuffer, Binding, Datatype, ExternalId, Role, Runtime, RuntimeOptions, Subgraph,
//!     TensorSpec, Unary, UnaryOp,
//! };
//!
//! # fn main() -> xnnpack::Result<()> {
//! let (x, y) = (ExternalId(0), ExternalId(1));
//! let mut graph = Subgraph::new()?;
//! let input = graph.define_tensor(TensorSpec::new(Datatype::F32, &[2]).role(Role::Input(x)))?;
//! let output = graph.define_tensor(TensorSpec::inferred(Datatype::F32).role(Role::Output(y)))?;
//! graph.define(Unary { op: UnaryOp::Abs, input, output })?;
//!
//! let mut runtime = Runtime::new(graph, &RuntimeOptions::default())?;
//! runtime.reshape()?;
//! let data = AlignedBuffer::of(&[-1.5f32, 2.0]);
//! let mut result = AlignedBuffer::new(8);
//! runtime.run(&mut [Binding::Input(x, data.input()), Binding::Output(y, result.output())])?;
//! assert_eq!(result.elements::<f32>(), Some(&[1.5, 2.0][..]));
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod allocator;
mod buffer;
mod fp16_weights;
mod initialize;
mod memory;
mod profile;
mod reservation;
mod runtime;
mod static_data;
mod status;
mod subgraph;
mod target;
mod threadpool;
mod value;
mod weights_cache;
mod workspace;

pub use buffer::{
    ALIGNMENT, AlignedBuffer, EXTRA_BYTES, Element, OutputSlice, PaddedSlice, SPARSE_EXTRA_BYTES,
};
pub use fp16_weights::Fp16Weights;
pub use initialize::initialize;
pub use profile::OperatorTiming;
pub use runtime::{Binding, External, Fp16, RawRun, Runtime, RuntimeOptions};
pub use static_data::StaticData;
pub use status::{Error, NodeRef, Result, Status};
pub use subgraph::{
    ArgMaxPool2d, AveragePool2d, BatchMatMul, Binary, BinaryOp, Concatenate, ConstantPad, Conv2d,
    Copy, Deconv2d, DefineOperator, DepthToSpace2d, DepthwiseConv2d, EvenSplit, ExpandDims, Flags,
    FullyConnected, FullyConnectedSparse, GlobalPool, MAX_DYNAMIC_TAPS, MaxPool2d, OutputRange,
    Padding2d, PooledDims, ReduceOp, Reshape, ResizeBilinear2d, Rope, ScaledDotProductAttention,
    Slice, Softmax, SpaceToDepth2d, StaticReduce, Subgraph, Transpose, Unary, UnaryOp, Unpool2d,
};
pub use target::{
    SPARSE_INPUTS, adds_in_16_bits, build_identifier, has_exact_dynamic_convolutions,
    has_fast_uint8, has_half_precision, instruction_sets, isa_levels, isa_limit,
    packs_for_many_rows, packs_fp16_weights, processor, skips_zero_weights,
};
pub use threadpool::ThreadPool;
pub use value::{
    Datatype, ExternalId, MAX_DIMS, MAX_TENSOR_BYTES, Quantization, Role, Shape, TensorSpec,
    ValueId,
};
pub use weights_cache::{
    Finalization, PackedNode, PackedWeights, WeightsCache, WeightsCacheProvider, WeightsKey,
};
pub use workspace::Workspace;
