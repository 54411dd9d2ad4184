//! Execution of operators that read and write variables.

use xnn_model::{OutOfMemory, TensorId};

use super::{Machine, missing};
use crate::error::{Error, ErrorKind, refuse};
use crate::execution_plan::{Step, SubgraphPlan};
use crate::frame::Frame;
use crate::storage::TensorBuf;
use crate::variables::{Access, Variable};

impl Machine {
    pub(crate) fn access(
        &mut self,
        graph: &SubgraphPlan,
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
                    refuse(format!("the variable has element type {found}, expected {expected}"))?;
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

    fn handle(
        &self,
        graph: &SubgraphPlan,
        variable: Variable,
        frame: &Frame,
    ) -> Result<u64, Error> {
        match variable {
            Variable::Known(handle) => Ok(handle),
            Variable::In(tensor) => {
                let handle = frame.tensor(graph, tensor, &self.resources.variables);
                match handle.and_then(|handle| handle.as_slice::<u64>()) {
                    Some([handle, ..]) => Ok(*handle),
                    _ => {
                        Err(ErrorKind::Execution("the handle of a variable is missing".into())
                            .into())
                    }
                }
            }
        }
    }

    fn assign(
        &mut self,
        handle: u64,
        graph: &SubgraphPlan,
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
