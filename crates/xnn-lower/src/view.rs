//! Checked access to one operator of a subgraph and its tensors.

use std::ops::RangeInclusive;

use xnn_model::{Op, Operator, Subgraph, Tensor, TensorId};

use crate::why_not::{NamedTensor, WhyNot};

/// Largest rank of XNNPACK's tensors, `XNN_MAX_TENSOR_DIMS`.
pub(crate) const MAX_RANK: usize = 6;

/// An operator in its subgraph.
#[derive(Clone, Copy)]
pub(crate) struct OpView<'a> {
    pub graph: &'a Subgraph,
    pub operator: &'a Operator,
    /// For each tensor, the operator that writes it.
    writers: &'a [Option<usize>],
}

/// A tensor whose shape is known.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub id: TensorId,
    pub tensor: &'a Tensor,
    pub shape: &'a [usize],
}

impl<'a> OpView<'a> {
    /// Creates a view without the writers of tensors.
    pub fn new(graph: &'a Subgraph, index: usize) -> Self {
        Self { graph, operator: &graph.operators[index], writers: &[] }
    }

    /// Adds the [`writers`] of the graph.
    pub fn with_writers(self, writers: &'a [Option<usize>]) -> Self {
        Self { writers, ..self }
    }

    /// The operator that computes the input at `position`, even if its result is known.
    pub fn writer(&self, position: usize) -> Option<Self> {
        let writer = self.writers.get(self.operator.input(position)?).copied().flatten()?;
        Some(Self { operator: self.graph.operators.get(writer)?, ..*self })
    }

    pub fn op(&self) -> &'a Op {
        &self.operator.op
    }

    /// Checks the number of inputs and outputs.
    pub fn arity(
        &self,
        inputs: RangeInclusive<usize>,
        outputs: RangeInclusive<usize>,
    ) -> Result<(), WhyNot> {
        let found = self.operator.inputs.len();
        if !inputs.contains(&found) {
            return Err(WhyNot::InputCount { found, expected: range_text(&inputs) });
        }
        let found = self.operator.outputs.len();
        if !outputs.contains(&found) {
            return Err(WhyNot::OutputCount { found, expected: range_text(&outputs) });
        }
        Ok(())
    }

    /// The input at `position`, which is required.
    pub fn input(&self, position: usize) -> Result<Operand<'a>, WhyNot> {
        self.optional_input(position)?.ok_or_else(|| WhyNot::InputCount {
            found: self.operator.inputs.iter().flatten().count(),
            expected: format!("at least {}", position + 1),
        })
    }

    /// The input at `position`, if it is present.
    pub fn optional_input(&self, position: usize) -> Result<Option<Operand<'a>>, WhyNot> {
        self.operator.input(position).map(|id| self.tensor(id)).transpose()
    }

    /// All inputs, each of which is required.
    pub fn inputs(&self) -> Result<Vec<Operand<'a>>, WhyNot> {
        (0..self.operator.inputs.len()).map(|position| self.input(position)).collect()
    }

    /// The output at `position`.
    pub fn output(&self, position: usize) -> Result<Operand<'a>, WhyNot> {
        let outputs = &self.operator.outputs;
        let id = outputs.get(position).copied().ok_or_else(|| WhyNot::OutputCount {
            found: outputs.len(),
            expected: format!("at least {}", position + 1),
        })?;
        self.tensor(id)
    }

    /// All outputs.
    pub fn outputs(&self) -> Result<Vec<Operand<'a>>, WhyNot> {
        self.operator.outputs.iter().map(|&id| self.tensor(id)).collect()
    }

    fn tensor(&self, id: TensorId) -> Result<Operand<'a>, WhyNot> {
        let tensor = self.graph.tensor(id);
        if let Some(why) = &tensor.unusable {
            return Err(WhyNot::Unusable {
                tensor: NamedTensor::new(id, tensor),
                why: why.clone(),
            });
        }
        match &tensor.shape {
            Some(shape) => Ok(Operand { id, tensor, shape }),
            None => Err(WhyNot::UnknownShape { tensor: NamedTensor::new(id, tensor) }),
        }
    }
}

impl Operand<'_> {
    pub fn to_ref(self) -> NamedTensor {
        NamedTensor::new(self.id, self.tensor)
    }

    /// Whether dimension `axis` may differ between runs.
    pub fn is_dynamic(&self, axis: usize) -> bool {
        let signature = self.tensor.shape_signature.as_ref();
        signature.and_then(|s| s.get(axis)).is_some_and(|&d| d < 0)
    }
}

/// For each tensor, the operator that writes it.
pub(crate) fn writers(graph: &Subgraph) -> Vec<Option<usize>> {
    let mut writers = vec![None; graph.tensors.len()];
    for (index, operator) in graph.operators.iter().enumerate() {
        for &output in &operator.outputs {
            writers[output] = Some(index);
        }
    }
    writers
}

fn range_text(range: &RangeInclusive<usize>) -> String {
    if range.start() == range.end() {
        range.start().to_string()
    } else {
        format!("{} to {}", range.start(), range.end())
    }
}
