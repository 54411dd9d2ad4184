//! Shapes of all tensors of a subgraph, from those of its inputs.

use super::Subgraph;
use super::context::{Context, Value};
use super::quantization::check_quantization;
use crate::status::{Error, NodeRef, Result};
use crate::value::{Role, Shape, ValueId};

impl Subgraph {
    /// Infers the shapes of all tensors from those of inputs and constants in `shapes`, and checks
    /// every node with them.
    pub(crate) fn infer(&self, shapes: Vec<Option<Shape>>) -> Result<Vec<Option<Shape>>> {
        if self.changes_only_batch(&shapes) {
            let inferred = self.infer_from(shapes.clone(), true)?;
            if self.changes_only_batch(&inferred) {
                return Ok(inferred);
            }
        }
        self.infer_from(shapes, false)
    }

    /// Infers all shapes; `only_batch` tells whether only the first dimensions of tensors change.
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

    /// Returns the first node that XNNPACK cannot reshape in place from the shapes `old` to `new`.
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

    /// Stores the shape that a node computes for `id` from the shapes of a runtime's inputs.
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
            return Err(Error::invalid(format!(
                "{id} is persistent and cannot change its shape to {shape:?}"
            )));
        }
        shapes[index] = Some(shape);
        Ok(())
    }

    /// Context of the values with these shapes.
    pub(crate) fn context<'a>(
        &'a self,
        shapes: &'a [Option<Shape>],
        only_batch: bool,
    ) -> Context<'a> {
        Context { values: &self.values, shapes, defined: &self.shapes, only_batch }
    }

    /// Whether known shapes differ from the defined ones at most in their first dimension.
    pub(crate) fn changes_only_batch(&self, shapes: &[Option<Shape>]) -> bool {
        let mut pairs = shapes.iter().zip(&self.shapes).filter_map(|(a, b)| a.zip(*b));
        pairs.all(|(shape, defined)| shape.get(1..) == defined.get(1..))
    }

    /// Refuses a shape that a value cannot have, regardless of nodes.
    pub(crate) fn check_shape(&self, index: usize, shape: &Shape) -> Result<()> {
        let value = &self.values[index];
        shape.bytes(value.datatype)?;
        check_quantization(value.datatype, &value.quantization, Some(shape))
    }

    /// Sizes of all values in bytes with these shapes; 0 for unknown shapes.
    pub(crate) fn sizes(&self, shapes: &[Option<Shape>]) -> Result<Vec<usize>> {
        let size = |(value, shape): (&Value, &Option<Shape>)| {
            shape.map_or(Ok(0), |shape| shape.bytes(value.datatype))
        };
        self.values.iter().zip(shapes).map(size).collect()
    }

    /// Shapes that do not depend on nodes: those of constants, persistent tensors, and inputs as
    /// defined.
    pub(crate) fn defined_shapes(&self) -> Vec<Option<Shape>> {
        let defined = |(value, shape): (&Value, &Option<Shape>)| match value.role {
            Role::Input(_) | Role::Static(_) | Role::Fp16Weights(_) | Role::Persistent => *shape,
            Role::Internal | Role::Output(_) => None,
        };
        self.values.iter().zip(&self.shapes).map(defined).collect()
    }
}
