//! The trait that every kind of node implements: links, checks, shape inference and definition.

use std::fmt::Debug;

use smallvec::SmallVec;
use xnnpack_sys as sys;

use super::context::{Context, RawIds};
use super::params::OutputRange;
use crate::status::Result;
use crate::value::{Shape, ValueId};

/// An operator that [`Subgraph::define`](super::Subgraph::define) accepts. Implemented by the
/// parameter structures of this crate, and cannot be implemented outside of it.
pub trait DefineOperator: Operator + 'static {}

impl<T: Operator + 'static> DefineOperator for T {}

/// Tensors that a node reads and writes. Short lists are stored inline, since links are queried
/// often.
#[derive(Debug, Default)]
pub struct Links {
    pub(crate) inputs: SmallVec<[ValueId; 3]>,
    pub(crate) outputs: SmallVec<[ValueId; 1]>,
    /// Inputs that XNNPACK reads only once if they are constant, to pack them, and never beyond
    /// their end (ensured by `csrc/packing/within_rows.c` of `xnnpack-sys`).
    pub(crate) packed: SmallVec<[ValueId; 2]>,
    /// Packed input that XNNPACK looks up in a weights cache before it reads it.
    pub(crate) looked_up: Option<ValueId>,
}

impl Links {
    pub(crate) fn new(
        inputs: impl IntoIterator<Item = ValueId>,
        outputs: impl IntoIterator<Item = ValueId>,
    ) -> Self {
        Self {
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            packed: SmallVec::new(),
            looked_up: None,
        }
    }

    pub(crate) fn packing(mut self, operands: impl IntoIterator<Item = ValueId>) -> Self {
        self.packed.extend(operands);
        self
    }

    pub(crate) fn looking_up(self, operand: Option<ValueId>) -> Self {
        Self { looked_up: operand, ..self }
    }
}

/// Role of a node when XNNPACK fuses nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fusion {
    /// Not fused.
    None,
    /// Bounds its output, and absorbs the bounds of a following clamp.
    Bounds(OutputRange),
    /// Like `Bounds`, with padding that the bounds are written to.
    BoundsAndPads(OutputRange),
    /// A clamp, which absorbs the bounds of a following clamp.
    Clamp(OutputRange),
    /// A constant pad, which may become the padding of a convolution.
    Pad,
    /// Writes all of its outputs, even if nothing reads them.
    NeedsAllOutputs,
}

/// A kind of node: its checks, and its definition in XNNPACK.
///
/// XNNPACK does not validate many of its arguments, so `check` and `infer` together refuse
/// everything that would make it read or write out of bounds, divide by zero or reach unreachable
/// code with the present shapes. `infer` runs again before every reshape.
pub trait Operator: Debug + Send + Sync {
    /// Kind of the node, as in the names of XNNPACK's functions.
    fn kind(&self) -> &'static str;

    /// Tensors that the node reads and writes.
    fn links(&self) -> Links;

    /// Checks parameters, datatypes, quantization and constant operands.
    fn check(&self, cx: &Context<'_>) -> Result<()>;

    /// Shapes of the outputs, from those of the inputs.
    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>>;

    /// Whether XNNPACK can change from the shapes `old` to the shapes `new` without a new runtime.
    /// `peaks` are the largest sizes of the tensors so far in bytes: XNNPACK plans memory again
    /// when a tensor exceeds its peak.
    fn reshapes_in_place(&self, _old: &Context<'_>, _new: &Context<'_>, _peaks: &[usize]) -> bool {
        true
    }

    /// Filter that stays in fp16 when it is packed.
    fn fp16_filter(&self) -> Option<ValueId> {
        None
    }

    /// Whether the node uses sparse kernels, which read further beyond tensors and modify their
    /// weights.
    fn is_sparse(&self) -> bool {
        false
    }

    /// Role of the node when XNNPACK fuses nodes.
    fn fusion(&self) -> Fusion {
        Fusion::None
    }

    /// Whether XNNPACK can run the node in channels-first layout, which it may choose for sparse
    /// kernels.
    fn runs_channels_first(&self) -> bool {
        true
    }

    /// Output whose elements are positions in a pooling window, and the window.
    fn indices(&self) -> Option<(ValueId, [u32; 2])> {
        None
    }

    /// Defines the node in XNNPACK's subgraph.
    ///
    /// # Safety
    /// `graph` must be a live subgraph in which all values of `ids` are defined with the shapes
    /// that `infer` returned, and `check` and `infer` must have succeeded for these shapes.
    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status;
}
