//! Control operators: CALL, CALL_ONCE, STABLEHLO_COMPOSITE, IF and WHILE.

use xnn_model::{Op, Operator, SubgraphId};

use crate::error::{Refusal, refuse};

/// A control operator and the subgraphs that it runs.
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

    /// Returns an error unless inputs and outputs of the operator match its kind.
    pub(crate) fn check(self, operator: &Operator) -> Result<(), Refusal> {
        let (taken, given) = (operator.inputs.iter().flatten().count(), operator.outputs.len());
        match self {
            Self::While { .. } if taken != given => refuse(format!(
                "a loop with {taken} inputs and {given} outputs; expected as many outputs as inputs"
            )),
            Self::If { .. } if taken == 0 => refuse("the condition is missing"),
            _ => Ok(()),
        }
    }
}
