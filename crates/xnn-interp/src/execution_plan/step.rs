//! Steps of a plan.

use xnn_model::{Subgraph, TensorId};

use crate::control::Control;
use crate::delegate::OperatorSet;
use crate::operator::Run;
use crate::variables::Access;

/// An operator or a partition, ready to run.
pub(crate) struct Step {
    /// The operator, or the first one of a partition, for errors.
    pub(crate) operator: usize,
    /// The operators with their boundary.
    pub(crate) set: OperatorSet,
    pub(crate) action: Action,
    /// Work of a partition. That of an operator follows from its shapes.
    pub(crate) work: u64,
    /// Positions of the variables that a kernel changes among its inputs.
    pub(crate) states: Vec<usize>,
    /// Outputs, followed by the variables that change, each with its position; sorted by tensor.
    pub(crate) written: Vec<(TensorId, usize)>,
    /// Whether the step computes the same in every run, so that it runs only once.
    pub(crate) once: bool,
    /// Tensors that no later step reads.
    pub(crate) release: Vec<TensorId>,
}

pub(crate) enum Action {
    Kernel(Run),
    Control(Control),
    Access(Access),
    /// Runs the partition with this index in the plan.
    Delegated(usize),
    /// Runs a partition if its session accepts the shapes. Otherwise the next `kernels` steps run
    /// its operators.
    Deferred {
        /// Index of the partition in the plan.
        session: usize,
        kernels: usize,
    },
}

impl Step {
    pub(super) fn new(graph: &Subgraph, set: OperatorSet, action: Action) -> Self {
        let operator = set.operators.first().copied().unwrap_or(0);
        let mut written: Vec<TensorId> = set.outputs.clone();
        let mut states = vec![];
        if let (Action::Kernel(_), Some(node)) = (&action, graph.operators.get(operator)) {
            for (position, id) in node.inputs.iter().enumerate() {
                if let Some(id) = *id
                    && graph.tensor(id).is_variable
                    && !written.contains(&id)
                {
                    states.push(position);
                    written.push(id);
                }
            }
        }
        let mut written: Vec<(TensorId, usize)> = written.into_iter().zip(0..).collect();
        written.sort_unstable();
        Self { operator, set, action, work: 0, states, written, once: false, release: vec![] }
    }

    /// Whether this step is the last to read a tensor and reads it once.
    pub(crate) fn consumes(&self, id: TensorId) -> bool {
        let reads = self.set.inputs.iter().filter(|&&input| input == id).count();
        reads == 1 && self.release.contains(&id)
    }
}
