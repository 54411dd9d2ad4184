//! XNNPACK's own subgraph object, defined from a [`Subgraph`].

use std::ptr;

use xnnpack_sys as sys;

use super::context::{RawIds, Value, index};
use super::{NodeEntry, Subgraph};
use crate::status::{Error, Result, check};
use crate::value::{Quantization, Role, Shape};

/// XNNPACK's subgraph object.
pub(crate) struct RawSubgraph {
    raw: sys::xnn_subgraph_t,
}

impl RawSubgraph {
    /// Defines all of `subgraph` with the given shapes in a new object.
    ///
    /// The object, and every runtime created from it, hold pointers to data and quantization
    /// parameters of `subgraph`, which must outlive them.
    pub(crate) fn new(subgraph: &Subgraph, shapes: &[Option<Shape>]) -> Result<Self> {
        let externals = subgraph.externals().count();
        let externals = u32::try_from(externals)
            .map_err(|_| Error::invalid("too many inputs and outputs").during("create subgraph"))?;
        let this = Self::with_externals(externals)?;

        let live = subgraph.live_nodes();
        let used = subgraph.used_values(&live);
        let mut next_external = 0u32;
        let part = |index: usize, value: &Value| {
            let (flags, external_id) = match value.role {
                Role::Input(_) => (sys::XNN_VALUE_FLAG_EXTERNAL_INPUT, next_external),
                Role::Output(_) => (sys::XNN_VALUE_FLAG_EXTERNAL_OUTPUT, next_external),
                Role::Persistent => (sys::XNN_VALUE_FLAG_PERSISTENT, sys::XNN_INVALID_VALUE_ID),
                Role::Internal | Role::Static(_) | Role::Fp16Weights(_) => {
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

    /// Defines a single node of `subgraph`: its operator can be created, but not run.
    ///
    /// Like with [`RawSubgraph::new`], `subgraph` must outlive the object.
    pub(crate) fn of_node(
        subgraph: &Subgraph,
        shapes: &[Option<Shape>],
        node: &NodeEntry,
    ) -> Result<Self> {
        let links = node.operator.links();
        let outputs: Vec<usize> = links.outputs.iter().filter_map(|&id| index(id)).collect();
        let inputs: Vec<usize> = links.inputs.iter().filter_map(|&id| index(id)).collect();
        let this = Self::with_externals(outputs.len() as u32)?;
        let part =
            |index: usize, _: &Value| match outputs.iter().position(|&output| output == index) {
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

    /// Defines a node whose values are defined with their inferred shapes.
    fn define_node(&self, node: &NodeEntry, ids: &[u32]) -> Result<()> {
        // SAFETY: `raw` is live, the node's values are defined with the inferred shapes, and the
        // node was checked for them during inference.
        let status = unsafe { node.operator.define(self.raw, &RawIds { ids }) };
        check("define node", status).map_err(|error| error.at(node.reference))
    }

    /// XNNPACK's handle, valid while `self` lives.
    pub(crate) fn raw(&self) -> sys::xnn_subgraph_t {
        self.raw
    }

    /// Defines the values for which `part` returns flags and external id. Returns XNNPACK's ids.
    fn define_values(
        &self,
        subgraph: &Subgraph,
        shapes: &[Option<Shape>],
        mut part: impl FnMut(usize, &Value) -> Option<(u32, u32)>,
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
                    Error::invalid(format!("the shape of value {index} is unknown")).during(OP)
                );
            };
            let data = match &value.role {
                Role::Static(data) => data.start().cast(),
                Role::Fp16Weights(weights) => weights.start().cast(),
                _ => ptr::null(),
            };
            let datatype = value.datatype.raw();
            let (rank, dims) = (shape.len(), shape.as_ptr());
            let mut id = sys::XNN_INVALID_VALUE_ID;
            let out = &raw mut id;
            // SAFETY: the subgraph is live, and `dims` has `rank` elements. The number of scales
            // and the length of the data match the shape, which was checked when the tensor was
            // added. Both stay alive, as the caller guarantees.
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
        // SAFETY: `raw` is live, and runtimes do not refer to it.
        unsafe { sys::xnn_delete_subgraph(self.raw) };
    }
}
