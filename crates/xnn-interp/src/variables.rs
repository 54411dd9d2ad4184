//! Operators that read and write variables.

use xnn_model::{DType, Op, OutOfMemory, TensorId};

use crate::error::{Error, ErrorKind, Refusal, refuse};
use crate::frame::Frame;
use crate::kernels;
use crate::machine::{Machine, missing};
use crate::node::Node;
use crate::program::{Graph, Step};
use crate::storage::TensorBuf;

/// The variable of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// The one with this handle.
    Known(u64),
    /// The one whose handle comes in a tensor.
    In(TensorId),
}

impl Variable {
    pub(crate) fn is_known(self) -> bool {
        matches!(self, Self::Known(_))
    }
}

/// What an operator does to a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Gives a tensor the variable's value; where it `lends`, the variable's own memory.
    Read { variable: Variable, tensor: TensorId, lends: bool },
    /// Gives the variable a tensor's value.
    Assign { variable: Variable, tensor: TensorId },
}

impl Access {
    /// Whether a variable may have another value afterwards.
    pub(crate) fn may_change(self, variable: Variable) -> bool {
        match self {
            Self::Read { .. } => false,
            Self::Assign { variable: changed, .. } => {
                !(changed.is_known() && variable.is_known()) || changed == variable
            }
        }
    }
}

/// What an operator does to a variable, where it does; `handles` are those that the subgraph makes itself.
pub(crate) fn access_of(
    node: &Node<'_>,
    handles: &[(TensorId, u64)],
) -> Result<Option<Access>, Refusal> {
    let reads = match &node.operator.op {
        Op::ReadVariable => true,
        Op::AssignVariable => false,
        _ => return Ok(None),
    };
    node.expect_input(0, DType::Resource)?;
    let value = if reads { node.output(0)? } else { node.input(1)? };
    kernels::width(value.dtype)?;
    let tensor =
        if reads { node.operator.outputs.first().copied() } else { node.operator.input(1) };
    let (Some(resource), Some(tensor)) = (node.operator.input(0), tensor) else {
        return refuse("a tensor is missing");
    };
    let known = handles.iter().find(|(id, _)| *id == resource);
    let variable = known.map_or(Variable::In(resource), |(_, handle)| Variable::Known(*handle));
    Ok(Some(match reads {
        true => Access::Read { variable, tensor, lends: false },
        false => Access::Assign { variable, tensor },
    }))
}

impl Machine {
    pub(crate) fn access(
        &mut self,
        graph: &Graph,
        step: &Step,
        access: Access,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        match access {
            Access::Read { variable, tensor, lends } => {
                let handle = self.handle(graph, variable, frame)?;
                let value = self.resources.variables.get(handle)?;
                let expected = graph.subgraph.tensor(tensor).dtype;
                if value.dtype() != expected {
                    let found = value.dtype();
                    refuse(format!("a variable of {found} where {expected} is read"))?;
                }
                if lends {
                    frame.lend(tensor, handle, value);
                } else {
                    frame.copy_in(tensor, value.view(), self.max_tensor_bytes())?;
                }
            }
            Access::Assign { variable, tensor } => {
                let handle = self.handle(graph, variable, frame)?;
                self.assign(handle, graph, step, tensor, frame)?;
            }
        }
        Ok(())
    }

    fn handle(&self, graph: &Graph, variable: Variable, frame: &Frame) -> Result<u64, Error> {
        match variable {
            Variable::Known(handle) => Ok(handle),
            Variable::In(tensor) => {
                let handle = frame.tensor(graph, tensor, &self.resources.variables);
                match handle.and_then(|handle| handle.as_slice::<u64>()) {
                    Some([handle, ..]) => Ok(*handle),
                    _ => Err(ErrorKind::Execution("a handle is missing".into()).into()),
                }
            }
        }
    }

    fn assign(
        &mut self,
        handle: u64,
        graph: &Graph,
        step: &Step,
        tensor: TensorId,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        let expected = graph.subgraph.tensor(tensor).dtype;
        let place = self.resources.variables.place(handle)?;
        let known = place.is_some();
        let mut value = place.take().unwrap_or_else(|| TensorBuf::empty(expected));
        let assigned = if step.consumes(tensor) && frame.trade(tensor, &mut value) {
            Ok(())
        } else {
            let source = frame.tensor(graph, tensor, &self.resources.variables);
            source.ok_or_else(|| missing(tensor)).and_then(|source| {
                let no_memory = || OutOfMemory::new("a variable", source.bytes.len());
                Ok(value.output().assign(source).ok_or_else(no_memory)?)
            })
        };
        if known || assigned.is_ok() {
            *self.resources.variables.place(handle)? = Some(value);
        }
        assigned
    }
}
