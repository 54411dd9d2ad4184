//! Checks of tensors and nodes as they are added to a subgraph.

use super::context::Value;
use super::operator::Operator;
use super::quantization::check_quantization;
use super::{NodeEntry, Subgraph};
use crate::buffer::SPARSE_EXTRA_BYTES;
use crate::status::{Error, NodeRef, Result};
use crate::value::{Datatype, Role, Shape, TensorSpec, ValueId};

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
                        "expected {bytes} bytes of data, found {}",
                        data.bytes().len()
                    )));
                }
                *data = data.clone().meeting(datatype.alignment(), 0)?;
            }
            (Role::Fp16Weights(weights), Some(bytes)) => {
                if datatype != Datatype::F32 || weights.byte_size() != bytes {
                    return Err(Error::invalid(format!(
                        "{weights:?} do not match a tensor of {bytes} bytes of {datatype}"
                    )));
                }
            }
            (Role::Input(_) | Role::Persistent | Role::Static(_) | Role::Fp16Weights(_), None) => {
                return Err(Error::invalid(
                    "a shape is required for inputs, constants and persistent tensors",
                ));
            }
        }
        if datatype == Datatype::Qdint8 && !matches!(role, Role::Internal) {
            return Err(Error::unsupported("only internal tensors can be quantized at run time"));
        }
        if let Some(id) = role.external_id()
            && !self.external_ids.insert(id)
        {
            return Err(Error::invalid(format!("external id {id} is already in use")));
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
                return Err(Error::invalid(format!(
                    "input {id} is not computed by an earlier node"
                )));
            }
            let is_looked_up = links.looked_up == Some(id)
                && links.inputs.iter().filter(|&&other| other == id).count() == 1;
            if matches!(value.role, Role::Fp16Weights(_)) && !is_looked_up {
                return Err(Error::unsupported(format!(
                    "input {id} has fp16 weights, which this operand does not support"
                )));
            }
        }
        for (position, &id) in links.outputs.iter().enumerate() {
            let value = &self.values[self.own(id)?];
            match value.role {
                Role::Internal | Role::Output(_) | Role::Persistent => {}
                Role::Static(_) | Role::Fp16Weights(_) => {
                    return Err(Error::invalid(format!("output {id} is constant")));
                }
                Role::Input(_) => {
                    return Err(Error::invalid(format!("output {id} is an external input")));
                }
            }
            if value.producer.is_some() || links.outputs[..position].contains(&id) {
                return Err(Error::invalid(format!(
                    "output {id} is already computed by another node"
                )));
            }
            if links.inputs.contains(&id) {
                return Err(Error::invalid(format!("{id} is both an input and an output")));
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

    /// Returns the shape that a node computes for `id`, if the tensor can have it.
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
}
