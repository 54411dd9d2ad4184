//! From the description of a subgraph to XNNPACK's own.

use std::collections::{HashMap, HashSet};
use std::ptr;

use xnnpack_sys as sys;

use super::node::{Fusion, RawIds, index};
use super::{NodeEntry, Subgraph};
use crate::fp16_weights::Halves;
use crate::status::{Error, NodeRef, Result, check};
use crate::value::{Datatype, Quantization, Role, Shape};
use crate::weights_cache::{Filter, NodeKey};

/// A subgraph object of XNNPACK.
pub(crate) struct RawSubgraph {
    raw: sys::xnn_subgraph_t,
}

impl RawSubgraph {
    /// Defines all of `subgraph`, with the given shapes, in a new object.
    ///
    /// The object, and every runtime created from it, point into the data and the quantization
    /// parameters of `subgraph`, which must outlive them.
    pub(crate) fn new(subgraph: &Subgraph, shapes: &[Option<Shape>]) -> Result<Self> {
        let externals = subgraph.externals().count();
        let externals = u32::try_from(externals)
            .map_err(|_| Error::invalid("too many inputs and outputs").during("create subgraph"))?;
        let this = Self::with_externals(externals)?;

        let live = subgraph.live_nodes();
        let used = subgraph.used_values(&live);
        let mut next_external = 0u32;
        let part = |index: usize, value: &super::Value| {
            let (flags, external_id) = match value.role {
                Role::Input(_) => (sys::XNN_VALUE_FLAG_EXTERNAL_INPUT, next_external),
                Role::Output(_) => (sys::XNN_VALUE_FLAG_EXTERNAL_OUTPUT, next_external),
                Role::Persistent => (sys::XNN_VALUE_FLAG_PERSISTENT, sys::XNN_INVALID_VALUE_ID),
                Role::Internal | Role::Static(_) | Role::Halves(_) => {
                    (0, sys::XNN_INVALID_VALUE_ID)
                }
            };
            let is_external = external_id == next_external;
            next_external += u32::from(is_external);
            (is_external || used.get(index) == Some(&true)).then_some((flags, external_id))
        };
        let ids = this.define_values(subgraph, shapes, part)?;
        for (node, _) in subgraph.nodes().iter().zip(&live).filter(|(_, live)| **live) {
            this.define_node(node, &ids)?;
        }
        Ok(this)
    }

    /// Defines one node of `subgraph` alone: its operator can be created, but not run.
    ///
    /// As with [`RawSubgraph::new`], `subgraph` must outlive the object.
    pub(crate) fn of_node(
        subgraph: &Subgraph,
        shapes: &[Option<Shape>],
        node: &NodeEntry,
    ) -> Result<Self> {
        let links = node.operator.links();
        let outputs: Vec<usize> = links.outputs.iter().filter_map(|&id| index(id)).collect();
        let inputs: Vec<usize> = links.inputs.iter().filter_map(|&id| index(id)).collect();
        let this = Self::with_externals(outputs.len() as u32)?;
        let part = |index: usize, _: &super::Value| match outputs
            .iter()
            .position(|&output| output == index)
        {
            Some(at) => Some((sys::XNN_VALUE_FLAG_EXTERNAL_OUTPUT, at as u32)),
            None => inputs.contains(&index).then_some((0, sys::XNN_INVALID_VALUE_ID)),
        };
        let ids = this.define_values(subgraph, shapes, part)?;
        this.define_node(node, &ids)?;
        Ok(this)
    }

    fn with_externals(count: u32) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: XNNPACK is initialized, since a `Subgraph` exists; the out pointer is valid.
        check("create subgraph", unsafe { sys::xnn_create_subgraph(count, 0, &raw mut raw) })?;
        Ok(Self { raw })
    }

    /// Defines a node all of whose values are defined, with the shapes that were inferred.
    fn define_node(&self, node: &NodeEntry, ids: &[u32]) -> Result<()> {
        // SAFETY: `raw` is live, the values that the node uses are defined with the inferred
        // shapes, and the node was checked for them when they were inferred.
        let status = unsafe { node.operator.define(self.raw, &RawIds { ids }) };
        check("define node", status).map_err(|error| error.at(node.reference))
    }

    /// Only valid while `self` lives.
    pub(crate) fn raw(&self) -> sys::xnn_subgraph_t {
        self.raw
    }

    /// Defines the values to which `part` gives flags and external id; returns XNNPACK's ids.
    fn define_values(
        &self,
        subgraph: &Subgraph,
        shapes: &[Option<Shape>],
        mut part: impl FnMut(usize, &super::Value) -> Option<(u32, u32)>,
    ) -> Result<Vec<u32>> {
        const OP: &str = "define tensor";
        let mut ids = Vec::with_capacity(subgraph.values().len());
        for (index, (value, shape)) in subgraph.values().iter().zip(shapes).enumerate() {
            let Some((flags, external_id)) = part(index, value) else {
                ids.push(sys::XNN_INVALID_VALUE_ID);
                continue;
            };
            let Some(shape) = shape else {
                return Err(
                    Error::invalid(format!("the shape of value {index} is not known")).during(OP)
                );
            };
            let data = match &value.role {
                Role::Static(data) => data.start().cast(),
                Role::Halves(halves) => halves.start().cast(),
                _ => ptr::null(),
            };
            let datatype = value.datatype.raw();
            let (rank, dims) = (shape.len(), shape.as_ptr());
            let mut id = sys::XNN_INVALID_VALUE_ID;
            let out = &raw mut id;
            // SAFETY: the subgraph is live; `dims` has `rank` elements; scales are as many as the
            // shape asks for and data is as long, which was checked when the tensor was added;
            // both stay alive, as the caller guarantees.
            let status = unsafe {
                match &value.quantization {
                    Quantization::None => sys::xnn_define_tensor_value(
                        self.raw,
                        datatype,
                        rank,
                        dims,
                        data,
                        external_id,
                        flags,
                        out,
                    ),
                    Quantization::PerTensor { zero_point, scale } => {
                        sys::xnn_define_quantized_tensor_value(
                            self.raw,
                            datatype,
                            *zero_point,
                            *scale,
                            rank,
                            dims,
                            data,
                            external_id,
                            flags,
                            out,
                        )
                    }
                    Quantization::PerChannel { zero_point, axis, scales } => {
                        sys::xnn_define_channelwise_quantized_tensor_value_v2(
                            self.raw,
                            datatype,
                            *zero_point,
                            scales.as_ptr(),
                            rank,
                            *axis,
                            dims,
                            data,
                            external_id,
                            flags,
                            out,
                        )
                    }
                    Quantization::Blockwise { zero_point, axis, block_size, scales } => {
                        sys::xnn_define_blockwise_quantized_tensor_value(
                            self.raw,
                            datatype,
                            *zero_point,
                            scales.as_ptr(),
                            rank,
                            *axis,
                            *block_size,
                            dims,
                            data,
                            external_id,
                            flags,
                            out,
                        )
                    }
                    Quantization::Dynamic { nonbatch_dims } => {
                        sys::xnn_define_dynamically_quantized_tensor_value(
                            self.raw,
                            datatype,
                            rank,
                            *nonbatch_dims,
                            dims,
                            external_id,
                            flags,
                            out,
                        )
                    }
                }
            };
            check(OP, status)?;
            ids.push(id);
        }
        Ok(ids)
    }
}

impl Drop for RawSubgraph {
    fn drop(&mut self) {
        // SAFETY: `raw` is live; runtimes keep nothing of it.
        unsafe { sys::xnn_delete_subgraph(self.raw) };
    }
}

impl Subgraph {
    /// Positions of the external tensors; XNNPACK's ids of them are 0, 1, ... in this order.
    pub(crate) fn externals(&self) -> impl Iterator<Item = usize> {
        let external =
            |(index, value): (usize, &super::Value)| value.role.external_id().map(|_| index);
        self.values().iter().enumerate().filter_map(external)
    }

    /// Shapes of all tensors for the shapes of the inputs and constants in `shapes`, which are
    /// checked against every node.
    pub(crate) fn infer(&self, shapes: Vec<Option<Shape>>) -> Result<Vec<Option<Shape>>> {
        if self.changes_only_batch(&shapes) {
            let inferred = self.infer_from(shapes.clone(), true)?;
            if self.changes_only_batch(&inferred) {
                return Ok(inferred);
            }
        }
        self.infer_from(shapes, false)
    }

    /// The same, knowing whether only the batch changes, which is the first dimension of all tensors.
    fn infer_from(
        &self,
        mut shapes: Vec<Option<Shape>>,
        only_batch: bool,
    ) -> Result<Vec<Option<Shape>>> {
        for node in self.nodes() {
            let context = self.context(&shapes, only_batch);
            let at = |error: Error| error.during("infer shapes").at(node.reference);
            let outputs = node.operator.infer(&context).map_err(at)?;
            for (&id, shape) in node.operator.links().outputs.iter().zip(outputs) {
                self.set_shape(&mut shapes, id, shape).map_err(at)?;
            }
        }
        Ok(shapes)
    }

    /// The first node that XNNPACK cannot bring from the shapes `old` to the shapes `new`.
    pub(crate) fn stuck_node(
        &self,
        old: &[Option<Shape>],
        new: &[Option<Shape>],
        peaks: &[usize],
    ) -> Option<NodeRef> {
        let [old, new] =
            [old, new].map(|shapes| self.context(shapes, self.changes_only_batch(shapes)));
        self.nodes()
            .iter()
            .find(|node| !node.operator.reshapes_in_place(&old, &new, peaks))
            .map(|node| node.reference)
    }

    /// Which nodes contribute to an output or a persistent tensor. XNNPACK aborts the process where
    /// one feeds only nodes that do not.
    pub(crate) fn live_nodes(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes().len()];
        let mut needed: Vec<bool> = self
            .values()
            .iter()
            .map(|value| matches!(value.role, Role::Output(_) | Role::Persistent))
            .collect();
        for (node, live) in self.nodes().iter().zip(&mut live).rev() {
            let links = node.operator.links();
            let mut outputs = links.outputs.iter().filter_map(|&id| index(id));
            *live = outputs.any(|index| needed[index]);
            if *live {
                for index in links.inputs.iter().filter_map(|&id| index(id)) {
                    needed[index] = true;
                }
            }
        }
        live
    }

    /// Which values live nodes read or write.
    fn used_values(&self, live: &[bool]) -> Vec<bool> {
        let mut used = vec![false; self.values().len()];
        for (node, _) in self.nodes().iter().zip(live).filter(|(_, live)| **live) {
            let links = node.operator.links();
            for index in links.inputs.iter().chain(&links.outputs).filter_map(|&id| index(id)) {
                used[index] = true;
            }
        }
        used
    }

    /// Whether XNNPACK's fusion of nodes keeps their meaning.
    ///
    /// It takes the larger lower and the smaller upper bound of two clamps, which makes no range
    /// where they do not meet; it writes the bounds of a clamp over the padding of the node before,
    /// which they must leave as it is when compared as floats; it adds paddings up in 32 bits; and
    /// it skips the writing of persistent tensors.
    pub(crate) fn can_fuse(&self) -> bool {
        let context = self.context(&[], true);
        let safe = |node: &NodeEntry| {
            let links = node.operator.links();
            let (&[input, ..], &[output, ..]) = (&*links.inputs, &*links.outputs) else {
                return true;
            };
            let producer = index(input)
                .and_then(|index| self.values().get(index)?.producer)
                .and_then(|producer| self.nodes().get(producer))
                .map_or(Fusion::None, |producer| producer.operator.fusion());
            let same = || match [input, output].map(|id| context.quantization(id)) {
                [Ok(input), Ok(output)] => input == output,
                _ => false,
            };
            match (producer, node.operator.fusion()) {
                (
                    Fusion::Bounds(first) | Fusion::BoundsAndPads(first) | Fusion::Clamp(first),
                    Fusion::Clamp(then),
                ) => {
                    let padded = matches!(producer, Fusion::BoundsAndPads(_));
                    let keeps_padding = (then.min < 0.0 || then.min.to_bits() == 0)
                        && then.max >= f32::MIN_POSITIVE;
                    let meet = first.min.max(then.min) < first.max.min(then.max);
                    same() && meet && (keeps_padding || !padded)
                }
                (Fusion::Pad, Fusion::Pad) => false,
                _ => true,
            }
        };
        !self.has_persistent() && self.nodes().iter().all(safe)
    }

    /// Whether all tensors are fp32 and last for a run at most: XNNPACK's rewrites for other
    /// arithmetic and layouts take that for granted.
    pub(crate) fn is_plain_f32(&self) -> bool {
        let plain = |value: &super::Value| {
            value.datatype == Datatype::F32 && !matches!(value.role, Role::Persistent)
        };
        self.values().iter().all(plain)
    }

    /// Whether all nodes can run in channels-first layout.
    pub(crate) fn runs_channels_first(&self) -> bool {
        self.is_plain_f32() && self.nodes().iter().all(|node| node.operator.runs_channels_first())
    }

    /// Bytes of all constants that nodes read, as large as they are when they have been packed.
    pub(crate) fn static_bytes(&self) -> usize {
        let half = self.nodes().iter().filter_map(|node| index(node.operator.half_filter()?));
        let half: HashSet<usize> = half.collect();
        let bytes = |(index, value): (usize, &super::Value)| match &value.role {
            Role::Static(data) => data.bytes().len(),
            Role::Halves(halves) if half.contains(&index) => halves.data().bytes().len(),
            Role::Halves(halves) => halves.byte_size(),
            _ => 0,
        };
        let read = self.values().iter().enumerate().filter(|(_, value)| value.consumed);
        read.map(bytes).fold(0, usize::saturating_add)
    }

    /// Constants that are kept in fp16.
    pub(crate) fn halves(&self) -> impl Iterator<Item = &Halves> {
        self.values().iter().filter_map(|value| match &value.role {
            Role::Halves(halves) => Some(halves),
            _ => None,
        })
    }

    /// The nodes by the address of their constant operands; `None` where several share one.
    pub(crate) fn nodes_by_data(&self) -> HashMap<usize, Option<Filter>> {
        let mut nodes = HashMap::new();
        for node in self.nodes() {
            for id in node.operator.links().inputs {
                let value = index(id).and_then(|index| self.values().get(index));
                let (start, data) = match value.map(|value| &value.role) {
                    Some(Role::Static(data)) => (data.start(), data),
                    Some(Role::Halves(halves)) => (halves.start(), halves.data()),
                    _ => continue,
                };
                let node = NodeKey { subgraph: self.token, node: node.reference.index };
                nodes
                    .entry(start.addr())
                    .and_modify(|shared| *shared = None)
                    .or_insert_with(|| Some(Filter { node, data: data.clone() }));
            }
        }
        nodes
    }
}
