//! Checks of tensors and nodes as they are added to a subgraph.

use super::node::{Context, Fusion, Operator};
use super::{NodeEntry, Subgraph, Value};
use crate::buffer::SPARSE_EXTRA_BYTES;
use crate::status::{Error, NodeRef, Result};
use crate::value::{Datatype, Quantization, Role, Shape, TensorSpec, ValueId};

impl Subgraph {
    pub(super) fn add_tensor(&mut self, spec: TensorSpec) -> Result<ValueId> {
        let TensorSpec { datatype, dims, quantization, mut role } = spec;
        let index =
            u32::try_from(self.values.len()).map_err(|_| Error::unsupported("too many tensors"))?;
        let shape = dims.as_deref().map(Shape::new).transpose()?;
        let bytes = shape.map(|shape| shape.bytes(datatype)).transpose()?;
        check_quantization(datatype, &quantization, shape.as_ref())?;

        match (&mut role, bytes) {
            (Role::Internal | Role::Output(_), _) => {}
            (Role::Input(_) | Role::Persistent, Some(_)) => {}
            (Role::Static(data), Some(bytes)) => {
                if data.bytes().len() != bytes {
                    return Err(Error::invalid(format!(
                        "{} bytes of data for a tensor of {bytes}",
                        data.bytes().len()
                    )));
                }
                *data = data.clone().meeting(datatype.alignment(), 0)?;
            }
            (Role::Halves(halves), Some(bytes)) => {
                if datatype != Datatype::F32 || halves.byte_size() != bytes {
                    return Err(Error::invalid(format!(
                        "{halves:?} for a tensor of {bytes} bytes of {datatype}"
                    )));
                }
            }
            (Role::Input(_) | Role::Persistent | Role::Static(_) | Role::Halves(_), None) => {
                return Err(Error::invalid("no shape is given, and no node computes one"));
            }
        }
        if datatype == Datatype::Qdint8 && !matches!(role, Role::Internal) {
            return Err(Error::unsupported("only internal tensors can be quantized dynamically"));
        }
        if let Some(id) = role.external_id()
            && !self.external_ids.insert(id)
        {
            return Err(Error::invalid(format!("external id {id} is taken")));
        }
        self.values.push(Value {
            datatype,
            quantization,
            role,
            producer: None,
            consumed: false,
            indices: None,
        });
        self.shapes.push(shape);
        Ok(ValueId { subgraph: self.token, index })
    }

    pub(super) fn add_node(
        &mut self,
        reference: NodeRef,
        operator: Box<dyn Operator>,
    ) -> Result<()> {
        let links = operator.links();
        for &id in &links.inputs {
            let value = &self.values[self.own(id)?];
            let computed = matches!(value.role, Role::Internal | Role::Output(_));
            if computed && value.producer.is_none() {
                return Err(Error::invalid(format!("nothing computes its input {id} before it")));
            }
            let is_looked_up = links.looked_up == Some(id)
                && links.inputs.iter().filter(|&&other| other == id).count() == 1;
            if matches!(value.role, Role::Halves(_)) && !is_looked_up {
                return Err(Error::unsupported(format!("its input {id} is kept in fp16")));
            }
        }
        for (position, &id) in links.outputs.iter().enumerate() {
            let value = &self.values[self.own(id)?];
            match value.role {
                Role::Internal | Role::Output(_) | Role::Persistent => {}
                Role::Static(_) | Role::Halves(_) => {
                    return Err(Error::invalid(format!("output {id} is constant")));
                }
                Role::Input(_) => {
                    return Err(Error::invalid(format!("output {id} is an external input")));
                }
            }
            if value.producer.is_some() || links.outputs[..position].contains(&id) {
                return Err(Error::invalid(format!("output {id} is computed already")));
            }
            if links.inputs.contains(&id) {
                return Err(Error::invalid(format!("{id} is both input and output")));
            }
        }

        let context = self.context(&self.shapes, true);
        operator.check(&context)?;
        let outputs = operator.infer(&context)?;
        let outputs = links
            .outputs
            .iter()
            .zip(outputs)
            .map(|(&id, shape)| Ok((self.own(id)?, self.accept_shape(id, shape)?)))
            .collect::<Result<Vec<_>>>()?;

        for &id in &links.inputs {
            let in_place = !links.packed.contains(&id);
            let index = self.own(id)?;
            let value = &mut self.values[index];
            value.consumed = true;
            if let Role::Static(data) = &mut value.role
                && in_place
            {
                *data = data.clone().meeting(value.datatype.alignment(), SPARSE_EXTRA_BYTES)?;
            }
        }
        for (index, shape) in outputs {
            self.shapes[index] = Some(shape);
            self.values[index].producer = Some(reference.index);
        }
        if let Some((id, window)) = operator.indices() {
            let index = self.own(id)?;
            self.values[index].indices = Some(window);
        }
        self.nodes.push(NodeEntry { reference, operator });
        Ok(())
    }
}

impl Subgraph {
    /// The shape that a node computes for `id`, if the tensor can have it.
    fn accept_shape(&self, id: ValueId, shape: Shape) -> Result<Shape> {
        let index = self.own(id)?;
        let value = &self.values[index];
        shape.bytes(value.datatype)?;
        let Some(defined) = self.shapes[index] else { return Ok(shape) };
        let same = match value.role {
            Role::Persistent => defined == shape,
            _ => defined.elements() == shape.elements(),
        };
        if !same {
            return Err(Error::invalid(format!(
                "{id} is defined with shape {defined:?}, but computed with {shape:?}"
            )));
        }
        Ok(shape)
    }

    /// Sets the shape that a node computes for `id` from the inputs' shapes of a runtime.
    pub(super) fn set_shape(
        &self,
        shapes: &mut [Option<Shape>],
        id: ValueId,
        shape: Shape,
    ) -> Result<()> {
        let index = self.own(id)?;
        let value = &self.values[index];
        shape.bytes(value.datatype)?;
        if matches!(value.role, Role::Persistent) && self.shapes[index] != Some(shape) {
            return Err(Error::invalid(format!("{id} is persistent and cannot take {shape:?}")));
        }
        shapes[index] = Some(shape);
        Ok(())
    }

    /// The values of the subgraph with these shapes, in which inputs are those asked for.
    pub(crate) fn context<'a>(
        &'a self,
        shapes: &'a [Option<Shape>],
        only_batch: bool,
    ) -> Context<'a> {
        Context { values: &self.values, shapes, defined: &self.shapes, only_batch }
    }

    /// Whether values with known shapes are as they were defined but for their first dimension.
    pub(crate) fn changes_only_batch(&self, shapes: &[Option<Shape>]) -> bool {
        let mut pairs = shapes.iter().zip(&self.shapes).filter_map(|(a, b)| a.zip(*b));
        pairs.all(|(shape, defined)| shape.get(1..) == defined.get(1..))
    }

    /// Refuses a shape that a value cannot have, whatever the nodes.
    pub(crate) fn check_shape(&self, index: usize, shape: &Shape) -> Result<()> {
        let value = &self.values[index];
        shape.bytes(value.datatype)?;
        check_quantization(value.datatype, &value.quantization, Some(shape))
    }

    /// Bytes of all values in these shapes, 0 where they have none.
    pub(crate) fn sizes(&self, shapes: &[Option<Shape>]) -> Result<Vec<usize>> {
        let size = |(value, shape): (&Value, &Option<Shape>)| {
            shape.map_or(Ok(0), |shape| shape.bytes(value.datatype))
        };
        self.values.iter().zip(shapes).map(size).collect()
    }

    /// Shapes that do not depend on nodes: of constants, persistent tensors, and inputs as defined.
    pub(crate) fn defined_shapes(&self) -> Vec<Option<Shape>> {
        let defined = |(value, shape): (&Value, &Option<Shape>)| match value.role {
            Role::Input(_) | Role::Static(_) | Role::Halves(_) | Role::Persistent => *shape,
            Role::Internal | Role::Output(_) => None,
        };
        self.values.iter().zip(&self.shapes).map(defined).collect()
    }

    /// Whether tensors are kept from run to run.
    pub(crate) fn has_persistent(&self) -> bool {
        self.values.iter().any(|value| matches!(value.role, Role::Persistent))
    }

    /// Whether sparse kernels run, whatever the options of the runtime.
    pub(crate) fn is_sparse(&self) -> bool {
        self.nodes.iter().any(|node| node.operator.is_sparse())
    }

    /// Refuses an output that nothing reads where XNNPACK would write to it nevertheless.
    fn check_all_outputs_used(&self) -> Result<()> {
        let live = self.live_nodes();
        let mut read = vec![false; self.values.len()];
        for (node, _) in self.nodes.iter().zip(&live).filter(|(_, live)| **live) {
            for id in node.operator.links().inputs {
                read[self.own(id)?] = true;
            }
        }
        for (node, &live) in self.nodes.iter().zip(&live) {
            if !live || node.operator.fusion() != Fusion::NeedsAllOutputs {
                continue;
            }
            for id in node.operator.links().outputs {
                let index = self.own(id)?;
                if !read[index] && matches!(self.values[index].role, Role::Internal) {
                    let reason = format!("nothing uses its output {id}");
                    return Err(Error::unsupported(reason).at(node.reference));
                }
            }
        }
        Ok(())
    }

    /// Refuses a subgraph that cannot be run.
    pub(crate) fn check_complete(&self) -> Result<()> {
        const OP: &str = "create runtime";
        if self.nodes.is_empty() {
            return Err(Error::invalid("the subgraph has no nodes").during(OP));
        }
        self.check_all_outputs_used().map_err(|error| error.during(OP))?;
        let missing = |value: &&Value| value.producer.is_none();
        let outputs = self.values.iter().filter(|value| matches!(value.role, Role::Output(_)));
        match outputs.clone().find(missing).and_then(|value| value.role.external_id()) {
            Some(id) => Err(Error::invalid(format!("no node computes output {id}")).during(OP)),
            None if outputs.count() == 0 => {
                Err(Error::invalid("the subgraph has no output").during(OP))
            }
            None => Ok(()),
        }
    }
}

/// Refuses quantization parameters that do not fit the datatype and the shape.
fn check_quantization(
    datatype: Datatype,
    quantization: &Quantization,
    shape: Option<&Shape>,
) -> Result<()> {
    use Datatype as D;
    use Quantization as Q;

    let known =
        || shape.ok_or_else(|| Error::invalid(format!("a {datatype} tensor needs a shape")));
    match (datatype, quantization) {
        (D::F32 | D::F16 | D::Bf16 | D::I32, Q::None) => Ok(()),
        (D::Qint8, Q::PerTensor { zero_point, scale }) => {
            check_zero_point(*zero_point, -128..=127)?;
            check_scale(*scale)
        }
        (D::Quint8, Q::PerTensor { zero_point, scale }) => {
            check_zero_point(*zero_point, 0..=255)?;
            check_scale(*scale)
        }
        (D::Qint32, Q::PerTensor { zero_point, scale }) => {
            check_zero_point(*zero_point, 0..=0)?;
            check_scale(*scale)
        }
        (D::Qcint8 | D::Qcint32 | D::Qcint4, Q::PerChannel { zero_point, axis, scales }) => {
            let shape = known()?;
            match (datatype, zero_point) {
                (_, 0) | (D::Qcint4, 8) => {}
                _ => return Err(Error::invalid(format!("zero point {zero_point} for {datatype}"))),
            }
            if datatype == D::Qcint4 {
                check_pairs(shape)?;
            }
            let channels = *shape.get(*axis).ok_or_else(|| {
                Error::invalid(format!("channel dimension {axis} of shape {shape:?}"))
            })?;
            if scales.len() != channels {
                return Err(Error::invalid(format!(
                    "{} scales for {channels} channels",
                    scales.len()
                )));
            }
            check_scales(scales)
        }
        (D::Qbint4, Q::Blockwise { zero_point, axis, block_size, scales }) => {
            let shape = known()?;
            if !matches!(zero_point, 0 | 8) {
                return Err(Error::invalid(format!("zero point {zero_point} for {datatype}")));
            }
            let &[outputs, inputs] = &**shape else {
                return Err(Error::invalid(format!("{datatype} of shape {shape:?}; two needed")));
            };
            if *axis != 0 {
                return Err(Error::unsupported(format!("blocks along dimension {axis}")));
            }
            if *block_size == 0 || !inputs.is_multiple_of(*block_size) {
                return Err(Error::invalid(format!(
                    "{inputs} input channels in blocks of {block_size}"
                )));
            }
            check_pairs(shape)?;
            let blocks = outputs * (inputs / block_size);
            if scales.len() != blocks {
                return Err(Error::invalid(format!("{} scales for {blocks} blocks", scales.len())));
            }
            let wide = |&bits: &u16| f32::from_bits(u32::from(bits) << 16);
            scales.iter().map(wide).try_for_each(check_scale)
        }
        (D::Qdint8, Q::Dynamic { nonbatch_dims }) => match shape {
            Some(shape) if *nonbatch_dims > shape.len() => Err(Error::invalid(format!(
                "rows of {nonbatch_dims} dimensions in shape {shape:?}"
            ))),
            _ => Ok(()),
        },
        _ => Err(Error::invalid(format!("{datatype} does not take these quantization parameters"))),
    }
}

fn check_zero_point(zero_point: i32, range: std::ops::RangeInclusive<i32>) -> Result<()> {
    if range.contains(&zero_point) {
        return Ok(());
    }
    Err(Error::invalid(format!("zero point {zero_point} is outside {range:?}")))
}

/// All at once, as there are many; which is at fault is looked for when one is.
fn check_scales(scales: &[f32]) -> Result<()> {
    let range = f32::MIN_POSITIVE..=f32::MAX;
    if scales.iter().fold(true, |all, scale| all & range.contains(scale)) {
        return Ok(());
    }
    scales.iter().copied().try_for_each(check_scale)
}

fn check_scale(scale: f32) -> Result<()> {
    if scale > 0.0 && scale.is_normal() {
        return Ok(());
    }
    Err(Error::invalid(format!("scale {scale} is not positive, finite and normalized")))
}

/// 4-bit elements are packed in pairs that may not span rows.
fn check_pairs(shape: &Shape) -> Result<()> {
    match shape.last() {
        Some(last) if last.is_multiple_of(2) => Ok(()),
        _ => Err(Error::unsupported(format!("4-bit elements in rows of odd length, {shape:?}"))),
    }
}
