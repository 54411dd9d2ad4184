//! Partitioning rules for SELECT and SELECT_V2.

use xnn_model::infer::broadcast_shapes;
use xnn_model::{DType, Op, TensorId};

use super::checks;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a choice between two constants for each element.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub condition: TensorId,
    /// Values for true and for false. They must be finite, because one of them is multiplied by 0.
    pub branches: [TensorId; 2],
    pub output: TensorId,
}

/// Rule for SELECT and SELECT_V2 of constants.
pub(crate) fn select(view: OpView<'_>) -> Result<Select, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (condition, output) = (view.input(0)?, view.output(0)?);
    let branches = [view.input(1)?, view.input(2)?];
    checks::extent(condition)?;
    checks::usable(condition)?;
    if condition.tensor.dtype != DType::Bool {
        let dtype = condition.tensor.dtype;
        return Err(WhyNot::Type { tensor: condition.to_ref(), dtype, expected: "bool" });
    }
    checks::f32_operand(output)?;
    for branch in branches {
        checks::f32_operand(branch)?;
        checks::constant(branch)?;
        let values = branch.tensor.constant_floats().unwrap_or_default();
        if !values.iter().all(|value| value.is_finite()) {
            return Err(WhyNot::Unusable {
                tensor: branch.to_ref(),
                why: "has elements that are not finite".into(),
            });
        }
    }
    let joint = [condition, branches[0], branches[1]]
        .iter()
        .try_fold(vec![], |joint: Vec<usize>, t: &Operand<'_>| broadcast_shapes(&joint, t.shape));
    // A vector has an element for each row in SELECT, and for each column in SELECT_V2.
    let chooses_rows =
        matches!(view.op(), Op::Select) && condition.shape.len() == 1 && output.shape.len() > 1;
    if chooses_rows || joint.as_deref() != Some(output.shape) {
        return Err(WhyNot::Shape {
            tensor: condition.to_ref(),
            expected: format!("{:?} does not choose among {:?}", condition.shape, output.shape),
        });
    }
    Ok(Select {
        condition: condition.id,
        branches: branches.map(|branch| branch.id),
        output: output.id,
    })
}
