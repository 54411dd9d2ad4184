//! READ_VARIABLE and ASSIGN_VARIABLE.

use xnn_model::{DType, Op, TensorId};

use crate::error::{Refusal, refuse};
use crate::operator::OperatorContext;
use crate::tensor::width;

/// The variable that an operator accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// The variable with this handle.
    Known(u64),
    /// The variable whose handle is in this tensor.
    In(TensorId),
}

impl Variable {
    pub(crate) fn is_known(self) -> bool {
        matches!(self, Self::Known(_))
    }
}

/// An access to a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Reads the variable's value into a tensor. If it `lends`, the tensor uses the variable's
    /// memory.
    Read { variable: Variable, tensor: TensorId, lends: bool },
    /// Assigns a tensor's value to the variable.
    Assign { variable: Variable, tensor: TensorId },
}

impl Access {
    /// Whether the access may change the value of a variable.
    pub(crate) fn may_change(self, variable: Variable) -> bool {
        match self {
            Self::Read { .. } => false,
            Self::Assign { variable: changed, .. } => {
                !(changed.is_known() && variable.is_known()) || changed == variable
            }
        }
    }
}

/// The access of an operator, or `None` if it is not one of these. `handles` are those that the
/// subgraph itself creates.
pub(crate) fn access_of(
    context: &OperatorContext<'_>,
    handles: &[(TensorId, u64)],
) -> Result<Option<Access>, Refusal> {
    let reads = match &context.operator.op {
        Op::ReadVariable => true,
        Op::AssignVariable => false,
        _ => return Ok(None),
    };
    context.expect_input(0, DType::Resource)?;
    let value = if reads { context.output(0)? } else { context.input(1)? };
    width(value.dtype)?;
    let tensor =
        if reads { context.operator.outputs.first().copied() } else { context.operator.input(1) };
    let (Some(resource), Some(tensor)) = (context.operator.input(0), tensor) else {
        return refuse("a tensor is missing");
    };
    let known = handles.iter().find(|(id, _)| *id == resource);
    let variable = known.map_or(Variable::In(resource), |(_, handle)| Variable::Known(*handle));
    Ok(Some(match reads {
        true => Access::Read { variable, tensor, lends: false },
        false => Access::Assign { variable, tensor },
    }))
}
