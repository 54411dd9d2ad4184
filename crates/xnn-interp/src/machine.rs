//! Machines: the state in which a plan runs.

mod control;
mod run;
mod shapes;
mod variables;

use std::collections::BTreeMap;
use std::sync::Arc;

use xnn_model::{Demand, Excess, ModelLimits, SubgraphId, TensorId};

use crate::cancel::CancelFlag;
use crate::delegate::{PartitionSession, SharedValues};
use crate::error::{Error, ErrorKind};
use crate::execution_plan::ExecutionPlan;
use crate::frame::Frame;
use crate::resources::Resources;
use crate::scratch::Scratch;

/// Size in bytes from which the tensors of an operator count as large: kernels may need much memory
/// besides them.
const LARGE: usize = 1 << 20;

/// A plan with all state for running it, except for the tensors of the entry point.
pub(crate) struct Machine {
    plan: Arc<ExecutionPlan>,
    pub(crate) resources: Resources,
    /// Memory for kernels, which run one at a time and share it.
    scratch: Scratch,
    /// One session per partition of the plan.
    sessions: Vec<Box<dyn PartitionSession>>,
    /// Frames of called subgraphs, while they do not run.
    pub(crate) frames: BTreeMap<SubgraphId, Vec<Frame>>,
    cancel: CancelFlag,
    /// Memory and work that the model may request, given its size and that of its inputs.
    allowed: Demand,
    /// Memory of the subgraphs that wait for the one that runs, in bytes.
    held: u64,
    /// Work of the run so far.
    spent: u64,
    /// Number of subgraphs that run, each called by the previous one.
    pub(crate) depth: usize,
}

impl Machine {
    /// Creates the machine, with sessions that share these values.
    pub(crate) fn new(plan: Arc<ExecutionPlan>, mut shared: SharedValues) -> Result<Self, Error> {
        let partitions = plan.partitions.iter();
        let sessions = partitions.map(|it| it.engine.session(&it.set, &mut shared));
        Ok(Self {
            resources: Resources::new(plan.names.len()),
            scratch: Scratch::default(),
            sessions: sessions.collect::<Result<_, _>>().map_err(ErrorKind::Delegate)?,
            allowed: plan.limits.amplification.allowed(plan.stored),
            held: 0,
            spent: 0,
            plan,
            frames: BTreeMap::new(),
            cancel: CancelFlag::default(),
            depth: 0,
        })
    }

    /// Creates another machine for the same plan, in its initial state.
    pub(crate) fn fork(&self) -> Result<Self, Error> {
        Self::new(self.plan.clone(), SharedValues::default())
    }

    pub(crate) fn plan(&self) -> &Arc<ExecutionPlan> {
        &self.plan
    }

    pub(crate) fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
    }

    pub(crate) fn set_cancel_flag(&mut self, flag: CancelFlag) {
        self.cancel = flag;
    }

    /// Resets state that outlives a run.
    pub(crate) fn reset(&mut self) {
        self.resources.reset();
        self.frames.clear();
        self.sessions.iter_mut().for_each(|session| session.reset());
    }

    /// The largest number of threads of a partition. Operators are computed by one thread.
    pub(crate) fn threads(&self) -> usize {
        self.sessions.iter().map(|session| session.threads()).max().unwrap_or(1)
    }

    pub(crate) fn limits(&self) -> &ModelLimits {
        &self.plan.limits
    }

    /// Memory in bytes that the subgraph that runs may take.
    fn memory_left(&self) -> u64 {
        self.allowed.bytes.saturating_sub(self.held)
    }

    /// Limit of a tensor in bytes.
    pub(crate) fn max_tensor_bytes(&self) -> usize {
        let left = usize::try_from(self.memory_left()).unwrap_or(usize::MAX);
        self.limits().max_tensor_bytes.min(left)
    }

    /// Sets the size of the inputs in bytes, which raises the limits of the model.
    pub(crate) fn set_inputs(&mut self, bytes: u64) {
        let mut amplification = self.limits().amplification;
        amplification.inputs = amplification.inputs.saturating_add(bytes);
        self.allowed = amplification.allowed(self.plan.stored);
    }

    /// Resets what is counted at the beginning of a run.
    pub(crate) fn begin(&mut self) {
        (self.held, self.spent) = (0, 0);
    }

    fn spend(&mut self, work: u64) -> Result<(), ErrorKind> {
        self.spent = self.spent.saturating_add(work);
        match (self.spent, self.allowed.work) {
            (value, limit) if value > limit => {
                Err(Excess { what: Excess::WORK, value, limit }.into())
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn given_twice() -> Error {
    ErrorKind::Execution("a tensor is written twice by one step".into()).into()
}

pub(crate) fn missing(id: TensorId) -> Error {
    ErrorKind::Execution(format!("tensor {id} has no value")).into()
}
