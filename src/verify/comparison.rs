//! Comparison of each step while the reference kernels run.

use std::collections::BTreeMap;

use xnn_interp::Executed;
use xnn_lower::PartitionOptions;
use xnn_model::{DType, SubgraphId};
use xnn_runtime::SessionOptions;

use super::deviation::Deviation;
use super::single::Single;
use super::special::why_undefined;
use super::{Skipped, Taken};
use crate::error::Error;

/// Delegated operators and the state of their comparison.
pub(super) struct Comparison<'a> {
    partition: &'a PartitionOptions,
    session: &'a SessionOptions,
    entry: SubgraphId,
    operators: BTreeMap<(SubgraphId, usize), (&'a Taken, State)>,
    /// Number of operators that have run.
    seen: usize,
    failure: Option<Error>,
}

enum State {
    Waiting,
    Skipped(String),
    Compared(Box<Compared>),
}

struct Compared {
    /// Position in the order of first runs.
    position: usize,
    runs: usize,
    deviations: Vec<Deviation>,
    /// The compiled operator, for later iterations of a loop.
    single: Option<Single>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        entry: SubgraphId,
        taken: &'a [Taken],
        partition: &'a PartitionOptions,
        session: &'a SessionOptions,
    ) -> Self {
        let operators = taken.iter().map(|it| ((it.subgraph, it.operator), (it, State::Waiting)));
        let operators = operators.collect();
        Self { partition, session, entry, operators, seen: 0, failure: None }
    }

    /// Compares the operators that have just run, unless a comparison has failed.
    pub(super) fn see(&mut self, executed: &Executed<'_>) {
        for &operator in executed.operators() {
            if self.failure.is_none()
                && let Err(error) = self.compare(executed, operator)
            {
                self.failure = Some(error);
            }
        }
    }

    fn compare(&mut self, executed: &Executed<'_>, operator: usize) -> Result<(), Error> {
        let key = (executed.subgraph_id(), operator);
        let Some((_, state)) = self.operators.get_mut(&key) else { return Ok(()) };
        let gives_none = |id| executed.tensor(id).is_none_or(|value| value.bytes.is_empty());
        let outputs = executed.subgraph().operators.get(operator).map(|it| &it.outputs);
        if outputs.is_none_or(|outputs| outputs.iter().all(|&id| gives_none(id))) {
            return Ok(());
        }
        if let State::Waiting = state {
            let (position, deviations) = (self.seen, vec![]);
            let compared = Compared { position, runs: 0, deviations, single: None };
            *state = State::Compared(Box::new(compared));
            self.seen += 1;
        }
        let State::Compared(compared) = state else { return Ok(()) };
        let single = match compared.single.take().filter(|single| single.is_for(executed)) {
            Some(single) => Ok(single),
            None => Single::new(executed, operator, self.partition, self.session)?,
        };
        match single {
            Ok(mut single) => {
                let deviations = single.compare(executed)?;
                let is_large = |it: &Deviation| !it.is_within(1.0, Deviation::SMALL);
                if deviations.iter().any(is_large)
                    && let Some(why) = undefined_for(executed, operator)
                {
                    *state = State::Skipped(why.into());
                    return Ok(());
                }
                compared.take_in(deviations);
                // Operators of the entry point run once.
                compared.single = (executed.subgraph_id() != self.entry).then_some(single);
            }
            Err(reason) => *state = State::Skipped(reason),
        }
        Ok(())
    }

    /// Returns deviations, in the order of first runs, and skipped operators.
    pub(super) fn finish(self) -> Result<(Vec<Deviation>, Vec<Skipped>), Error> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let (mut all, mut skipped) = (vec![], vec![]);
        for (taken, state) in self.operators.into_values() {
            let reason = match state {
                State::Compared(compared) => {
                    all.push(compared);
                    continue;
                }
                State::Skipped(reason) => reason,
                State::Waiting => "it does not run with these inputs".into(),
            };
            let Taken { subgraph, operator, op } = taken.clone();
            skipped.push(Skipped { subgraph, operator, op, reason });
        }
        all.sort_by_key(|compared| compared.position);
        Ok((all.into_iter().flat_map(|compared| compared.deviations).collect(), skipped))
    }
}

/// Why the result of an operator that has just run is undefined for its operands.
fn undefined_for(executed: &Executed<'_>, operator: usize) -> Option<&'static str> {
    let graph = executed.subgraph();
    let operator = graph.operators.get(operator)?;
    let operands = operator.inputs.iter().flatten().filter_map(|&id| executed.tensor(id));
    let floats = operands.filter(|it| it.dtype == DType::F32);
    let elements = floats.flat_map(|it| it.bytes.as_chunks::<4>().0);
    why_undefined(graph, operator, elements.map(|bytes| f32::from_ne_bytes(*bytes)))
}

impl Compared {
    /// Keeps the larger deviation of each output.
    fn take_in(&mut self, latest: Vec<Deviation>) {
        let run = self.runs;
        self.runs += 1;
        if self.deviations.is_empty() {
            self.deviations = latest;
            return;
        }
        for (worst, latest) in self.deviations.iter_mut().zip(latest) {
            if latest.distance > worst.distance {
                *worst = Deviation { run, ..latest };
            }
        }
    }
}
