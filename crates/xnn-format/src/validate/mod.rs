//! Checks that a graph is safe to pass to XNNPACK.
//!
//! XNNPACK trusts its callers in much of this: array lengths, shapes of weights, the order of
//! nodes. These checks refuse graphs with which XNNPACK or its kernels would read beyond a buffer,
//! divide by zero or misinterpret data: by value ([`value`]), by parameter ([`node`]) and by shape
//! ([`shape`](crate::shape)).

mod node;
mod value;

use crate::error::{Error, Result, require};
use crate::graph::Graph;
use crate::limits::{GraphLimits, at_most};
use crate::shape;
use crate::value::{Value, ValueId};

impl Value {
    /// Checks the value on its own: sizes within the default limits, the length of the data, and
    /// quantization that matches the datatype and the dimensions.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<()> {
        value::check(self, &GraphLimits::default())
    }
}

impl Graph {
    /// Checks that the graph is valid and safe to pass to XNNPACK, with the default
    /// [`GraphLimits`].
    ///
    /// # Errors
    /// The first violation, with the index and kind of the node or the index of the value.
    pub fn check(&self) -> Result<()> {
        self.check_with(&GraphLimits::default())
    }

    /// [`Graph::check`] with other limits.
    ///
    /// # Errors
    /// The errors of [`Graph::check`].
    pub fn check_with(&self, limits: &GraphLimits) -> Result<()> {
        for (index, value) in self.values.iter().enumerate() {
            value::check(value, limits).map_err(|error| error.in_value(index))?;
        }
        let scales = self.values.iter().map(|value| size_of_val(value.quantization.scales()));
        let scales = scales.fold(0, usize::saturating_add);
        at_most("the size of all scales", scales, limits.max_scale_bytes)?;
        self.check_flow(limits)?;
        for (index, node) in self.nodes.iter().enumerate() {
            node::check(self, node).map_err(|error| error.in_node(index, node.op.kind()))?;
        }
        shape::check(self, limits)?;
        self.check_origin()
    }

    /// Checks that names match the inputs, outputs and nodes.
    pub(crate) fn check_origin(&self) -> Result<()> {
        let names = [
            ("inputs", self.origin.input_names.len(), self.inputs.len()),
            ("outputs", self.origin.output_names.len(), self.outputs.len()),
        ];
        for (what, names, values) in names {
            require!(names == 0 || names == values, "{names} names for {values} {what}");
        }
        require!(
            self.origin.node_names.is_sorted_by(|(a, _), (b, _)| a < b),
            "the names of nodes are not in the order of their debug handles"
        );
        Ok(())
    }

    /// Checks that every value has one source, and that nodes read only values with a source before
    /// them.
    fn check_flow(&self, limits: &GraphLimits) -> Result<()> {
        let externals = self.inputs.len() + self.outputs.len();
        at_most("the number of external values", externals, limits.max_externals)?;
        let mut known: Vec<bool> = self.values.iter().map(|value| value.data.is_some()).collect();
        for &input in &self.inputs {
            let known = slot(&mut known, input)?;
            require!(!*known, "input {} is a constant or listed twice", input.0);
            *known = true;
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let read = node.inputs();
            let written = node.outputs();
            let mut flow = || {
                for &id in &read {
                    require!(*slot(&mut known, id)?, "value {} is read before it is written", id.0);
                }
                for &id in &written {
                    let known = slot(&mut known, id)?;
                    require!(
                        !*known,
                        "value {} is written, but it is an input, a constant or already written",
                        id.0
                    );
                    *known = true;
                }
                Ok(())
            };
            flow().map_err(|error: Error| error.in_node(index, node.op.kind()))?;
        }
        let mut listed = vec![false; self.values.len()];
        for &output in &self.outputs {
            require!(*slot(&mut known, output)?, "output {} is never written", output.0);
            let value = self.value(output);
            require!(
                !self.inputs.contains(&output) && value.is_some_and(|value| value.data.is_none()),
                "output {} is an input or a constant; insert a copy node",
                output.0
            );
            let listed = slot(&mut listed, output)?;
            require!(!*listed, "output {} is listed twice", output.0);
            *listed = true;
        }
        Ok(())
    }
}

fn slot(values: &mut [bool], id: ValueId) -> Result<&mut bool> {
    let count = values.len();
    values
        .get_mut(id.index())
        .ok_or_else(|| Error::invalid(format!("value {} does not exist; there are {count}", id.0)))
}
