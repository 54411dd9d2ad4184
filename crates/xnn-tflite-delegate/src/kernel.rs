//! Kernel of a partition: a node of the interpreter.

use xnn_model::TensorId;
use xnn_runtime::Program;

use crate::context::Context;
use crate::delegated_partition::DelegatedPartition;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::graph;
use crate::sessions::Sessions;

/// A delegated partition with its engine.
pub(crate) struct Kernel {
    partition: DelegatedPartition,
    sessions: Sessions,
    engine: Engine,
    /// The last program that XNNPACK ran: later ones reuse its packed weights.
    program: Option<Program>,
    /// Tensors on whose dimensions `engine` depends, with the dimensions that it was created for.
    depends_on: Vec<(TensorId, Vec<usize>)>,
    /// Dimensions of the outputs for these.
    output_dims: Vec<Vec<usize>>,
}

impl Kernel {
    /// Kernel that runs `partition` on `engine`, which `sessions` created.
    pub(crate) fn new(partition: DelegatedPartition, engine: Engine, sessions: &Sessions) -> Self {
        let program = match &engine {
            Engine::Xnnpack(engine) => Some(engine.session.program().clone()),
            Engine::Hosted(_) => None,
        };
        Self {
            depends_on: partition.depends_on(&engine),
            output_dims: partition.output_dims(&engine),
            partition,
            sessions: sessions.clone(),
            engine,
            program,
        }
    }

    /// Adapts to the shapes of the inputs, and sets the shapes of the outputs.
    pub(crate) fn prepare(&mut self, context: &Context) -> Result<()> {
        if self.shapes_differ(context)? {
            self.reshape(context)?;
        }
        let outputs = self.partition.outputs().iter().zip(&self.output_dims);
        outputs.into_iter().try_for_each(|(&id, dims)| context.resize(id, dims))
    }

    /// Computes the output tensors from the input tensors.
    pub(crate) fn invoke(&mut self, context: &Context) -> Result<()> {
        // Dynamic tensors get their shapes only when the nodes that compute them run.
        if self.shapes_differ(context)? {
            self.prepare(context)?;
        }
        self.engine.run(self.partition.inputs(), self.partition.outputs(), context)
    }

    /// Program that XNNPACK runs now; `None` if this project's interpreter computes the partition.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn program(&self) -> Option<&Program> {
        match &self.engine {
            Engine::Xnnpack(engine) => Some(engine.session.program()),
            Engine::Hosted(_) => None,
        }
    }

    /// Adapts to inputs of other dimensions.
    fn reshape(&mut self, context: &Context) -> Result<()> {
        let mut sessions = self.sessions.clone();
        sessions.program.similar.clone_from(&self.program);
        if let Some((partition, engine)) = self.partition.reshaped(context, &mut sessions)? {
            let earlier = self.program.take();
            *self = Self::new(partition, engine, &self.sessions);
            self.program = self.program.take().or(earlier);
        } else if let Engine::Xnnpack(engine) = &mut self.engine {
            let dims = |&id| Ok(graph::dims(context.tensor(id)?).unwrap_or_default());
            let dims = self.partition.inputs().iter().map(dims).collect::<Result<Vec<_>>>()?;
            engine.session.resize_inputs(dims.iter().map(Vec::as_slice).enumerate())?;
            self.depends_on = self.partition.depends_on(&self.engine);
            self.output_dims = self.partition.output_dims(&self.engine);
        }
        if self.shapes_differ(context)? {
            let reason = "they cannot be inferred from the shapes of the graph's inputs";
            return Err(Error::Shapes(reason.into()));
        }
        Ok(())
    }

    /// Whether tensors have other dimensions than those that the engine was created for.
    fn shapes_differ(&self, context: &Context) -> Result<bool> {
        for (id, dims) in &self.depends_on {
            if !graph::has_dims(context.tensor(*id)?, dims) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
