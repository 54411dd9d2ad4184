//! What runs at once.

use xnn_model::{Subgraph, TensorId};

use crate::control::Control;
use crate::delegate::Partition;
use crate::node::Run;
use crate::variables::Access;

/// An operator or a partition, ready to run.
pub(crate) struct Step {
    /// The operator, or the first of a partition: for errors.
    pub(crate) operator: usize,
    /// The operators with what they take and give.
    pub(crate) part: Partition,
    pub(crate) action: Action,
    /// What a run of a partition takes; what an operator takes follows from its shapes.
    pub(crate) work: u64,
    /// Positions of the inputs that a kernel changes: variables.
    pub(crate) states: Vec<usize>,
    /// Outputs with their positions, and behind these the states; sorted by tensor.
    pub(crate) written: Vec<(TensorId, usize)>,
    /// Whether it computes the same in every run, so that one is enough.
    pub(crate) once: bool,
    /// Tensors that no later step reads.
    pub(crate) release: Vec<TensorId>,
}

pub(crate) enum Action {
    Kernel(Run),
    Control(Control),
    Access(Access),
    /// The number of the partition in the program.
    Delegated(usize),
    /// A partition that is accepted or not when its shapes are known. So many steps follow, which run its operators where it is
    /// not.
    Deferred {
        /// The number of the partition in the program.
        session: usize,
        kernels: usize,
    },
}

impl Step {
    pub(super) fn new(graph: &Subgraph, part: Partition, action: Action) -> Self {
        let operator = part.operators.first().copied().unwrap_or(0);
        let mut written: Vec<TensorId> = part.outputs.clone();
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
        Self { operator, part, action, work: 0, states, written, once: false, release: vec![] }
    }

    /// Whether nothing reads a tensor behind this step, which reads it once.
    pub(crate) fn consumes(&self, id: TensorId) -> bool {
        let reads = self.part.inputs.iter().filter(|&&input| input == id).count();
        reads == 1 && self.release.contains(&id)
    }
}
