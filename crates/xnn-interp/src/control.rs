//! Operators that run other subgraphs.

use xnn_model::{DType, Op, Operator, SubgraphId};

use crate::error::{Error, ErrorKind};
use crate::machine::Machine;
use crate::observe::Observer;
use crate::storage::TensorBuf;

/// A control operator with the subgraphs that it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    Call(SubgraphId),
    CallOnce(SubgraphId),
    If { then: SubgraphId, otherwise: SubgraphId },
    While { condition: SubgraphId, body: SubgraphId },
}

pub(crate) fn control_of(operator: &Operator) -> Option<Control> {
    Some(match &operator.op {
        Op::Call(options) => Control::Call(options.subgraph),
        Op::CallOnce(options) => Control::CallOnce(options.subgraph),
        Op::StablehloComposite(options) => Control::Call(options.decomposition_subgraph),
        Op::If(options) => {
            Control::If { then: options.then_subgraph, otherwise: options.else_subgraph }
        }
        Op::While(options) => {
            Control::While { condition: options.cond_subgraph, body: options.body_subgraph }
        }
        _ => return None,
    })
}

impl Control {
    pub(crate) fn callees(self) -> Vec<SubgraphId> {
        match self {
            Self::Call(graph) | Self::CallOnce(graph) => vec![graph],
            Self::If { then, otherwise } => vec![then, otherwise],
            Self::While { condition, body } => vec![condition, body],
        }
    }

    /// Runs the subgraphs; gives the values of the operator's outputs.
    pub(crate) fn run(
        self,
        machine: &mut Machine,
        mut inputs: Vec<TensorBuf>,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<TensorBuf>, Error> {
        match self {
            Self::Call(graph) => machine.call(graph, inputs, observe),
            Self::CallOnce(graph) => {
                if !machine.resources.initialized.contains(&graph) {
                    machine.resources.initialized.push(graph);
                    machine.call(graph, vec![], observe)?;
                }
                Ok(vec![])
            }
            Self::If { then, otherwise } => {
                if inputs.is_empty() {
                    return Err(ErrorKind::Execution("the condition is missing".into()).into());
                }
                let condition = truth(&inputs.remove(0))?;
                machine.call(if condition { then } else { otherwise }, inputs, observe)
            }
            Self::While { condition, body } => {
                let limit = machine.limits().max_loop_iterations;
                for _ in 0..limit {
                    let verdict = machine.call(condition, inputs.clone(), observe)?;
                    match verdict.as_slice() {
                        [verdict] if !truth(verdict)? => return Ok(inputs),
                        [_] => inputs = machine.call(body, inputs, observe)?,
                        _ => {
                            let message = "the condition has more or less than one output";
                            return Err(ErrorKind::Execution(message.into()).into());
                        }
                    }
                }
                let what = "the number of iterations";
                Err(ErrorKind::Limit { what, value: limit.saturating_add(1), limit }.into())
            }
        }
    }
}

/// The value of a condition: one boolean.
fn truth(tensor: &TensorBuf) -> Result<bool, Error> {
    match (tensor.dtype(), tensor.view().bytes) {
        (DType::Bool, [value]) => Ok(*value != 0),
        (dtype, _) => Err(ErrorKind::Execution(format!(
            "the condition is {dtype} of shape {:?}, expected one boolean",
            tensor.shape()
        ))
        .into()),
    }
}
