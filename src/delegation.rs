//! A subgraph with its decisions and its compiled partitions.

use std::sync::Arc;

use xnn_interp::fold_constants_again;
use xnn_lower::explain::Report;
use xnn_lower::optimize::CONSTANTS;
use xnn_lower::{
    Decision, Deferred, Partition, PartitionOptions, Partitioning, deferred, partition,
};
use xnn_model::{Inferred, Model, Subgraph, infer};
use xnn_runtime::Program;

use crate::compile::XnnpackCompiler;
use crate::error::Error;
use crate::incomplete::Incomplete;

/// The partitioning of a subgraph: which operators are delegated, reasons for the others, and the compiled partitions.
///
/// ```
/// use xnn_delegate::lower::{Decision, Delegation};
/// use xnn_delegate::{Model, PartitionOptions};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let mut options = PartitionOptions::default();
/// options.disable.push("SOFTMAX".to_owned());
/// let model = Model::open(path)?;
/// let delegation = Delegation::new(model.main().unwrap(), &options)?;
/// let partitioning = delegation.partitioning();
/// for (operator, decision) in partitioning.decisions.iter().enumerate() {
///     if let Decision::NotDelegated(reason) = decision {
///         println!("operator {operator}: {reason}");
///     }
/// }
/// assert_eq!(partitioning.delegated() + 1, partitioning.decisions.len());
/// assert_eq!(delegation.programs().len(), partitioning.partitions.len());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Delegation {
    graph: Arc<Subgraph>,
    partitioning: Partitioning,
    programs: Vec<Program>,
    deferred: Vec<Deferred>,
}

/// Infers what is known of a subgraph before a run, for [`partition`]: shapes, and values that follow from shapes and
/// constants.
///
/// # Errors
///
/// The subgraph contradicts itself, or a limit is exceeded; memory is exhausted.
pub fn analyze(
    graph: Arc<Subgraph>,
    options: &PartitionOptions,
) -> Result<Inferred, xnn_model::Error> {
    analyze_with(graph, options, None)
}

/// Infers as [`analyze`] a subgraph that was analyzed `earlier` with inputs of other shapes. Values that follow from
/// constants alone are copied from there.
///
/// # Errors
///
/// See [`analyze`].
pub fn reanalyze(
    graph: Arc<Subgraph>,
    options: &PartitionOptions,
    earlier: &Inferred,
) -> Result<Inferred, xnn_model::Error> {
    analyze_with(graph, options, Some(earlier))
}

fn analyze_with(
    graph: Arc<Subgraph>,
    options: &PartitionOptions,
    earlier: Option<&Inferred>,
) -> Result<Inferred, xnn_model::Error> {
    let mut inferred = infer(graph)?;
    inferred.subgraph.check_demand(&options.limits.amplification)?;
    if options.optimize.allow(CONSTANTS) {
        let known = earlier.map_or(&[][..], |earlier| &earlier.values);
        fold_constants_again(&mut inferred, known)?;
    }
    Ok(inferred)
}

impl Delegation {
    /// Infers missing shapes, partitions, lowers and compiles.
    ///
    /// # Errors
    ///
    /// The subgraph contradicts itself, so that shapes cannot be inferred; a limit is exceeded; memory is exhausted.
    pub fn new(graph: &Arc<Subgraph>, options: &PartitionOptions) -> Result<Self, Error> {
        Self::with(Arc::clone(graph), options, XnnpackCompiler::default())
    }

    /// [`Delegation::new`] with a compiler that has options.
    ///
    /// # Errors
    ///
    /// See [`Delegation::new`].
    pub fn with(
        graph: Arc<Subgraph>,
        options: &PartitionOptions,
        mut compiler: XnnpackCompiler,
    ) -> Result<Self, Error> {
        let inferred = analyze(graph, options)?;
        let (partitioning, programs) = partition(&inferred, options, &mut compiler)?;
        let deferred = deferred(&inferred, &partitioning, options);
        let delegation = Self { deferred, ..Self::of(inferred.subgraph, partitioning, programs) };
        log::debug!("{}", delegation.report().summary);
        Ok(delegation)
    }

    /// Decisions and programs that exist already.
    pub(crate) const fn of(
        graph: Arc<Subgraph>,
        partitioning: Partitioning,
        programs: Vec<Program>,
    ) -> Self {
        Self { graph, partitioning, programs, deferred: Vec::new() }
    }

    /// The subgraph, with all shapes that could be inferred.
    #[must_use]
    pub fn graph(&self) -> &Arc<Subgraph> {
        &self.graph
    }

    /// Decisions for all operators.
    #[must_use]
    pub fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }

    /// The compiled partitions, in the order of [`Partitioning::partitions`].
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Groups of operators that are delegated during a run, when their shapes are known.
    #[must_use]
    pub fn deferred(&self) -> &[Deferred] {
        &self.deferred
    }

    /// Decisions as a report, for display or JSON.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::new(&self.graph, &self.partitioning).with_deferred(&self.deferred)
    }

    /// The program of a fully delegated subgraph.
    ///
    /// # Errors
    ///
    /// An operator is not delegated, no operator reads an input, or none computes an output.
    pub fn whole(&self) -> Result<&Program, Incomplete> {
        self.whole_program().ok_or_else(|| self.incomplete())
    }

    /// [`Delegation::whole`] for callers that do not report the reasons, which take long to write.
    pub(crate) fn whole_program(&self) -> Option<&Program> {
        let (partition, program) =
            self.partitioning.partitions.first().zip(self.programs.first())?;
        let is_whole = self.partitioning.is_full()
            && partition.inputs == self.graph.inputs
            && partition.outputs == self.graph.outputs;
        is_whole.then_some(program)
    }

    /// Partitions with their programs, and groups that are delegated during a run.
    pub(crate) fn into_parts(self) -> (impl Iterator<Item = (Partition, Program)>, Vec<Deferred>) {
        (self.partitioning.partitions.into_iter().zip(self.programs), self.deferred)
    }

    pub(crate) fn incomplete(&self) -> Incomplete {
        let reasons =
            self.partitioning.decisions.iter().enumerate().filter_map(|(index, decision)| {
                match decision {
                    Decision::NotDelegated(why) => {
                        let op = &self.graph.operators.get(index)?.op;
                        Some(format!("operator {index} ({op}): {why} [{}]", why.code()))
                    }
                    Decision::Delegated { .. } => None,
                }
            });
        let mut reasons: Vec<String> = reasons.collect();
        let stored = self.partitioning.partitions.iter().filter(|it| it.is_embedded).count();
        if stored > 0 {
            reasons.insert(0, format!("graphs that the model holds already: {stored}"));
        }
        if reasons.is_empty() {
            reasons.push(self.why_no_graph());
        }
        Incomplete { summary: self.report().summary, reasons }
    }

    /// Why the subgraph does not become one graph, although all operators are delegated.
    fn why_no_graph(&self) -> String {
        let partition = match self.partitioning.partitions.as_slice() {
            [] => return "it has no operators".into(),
            [partition] => partition,
            several => return format!("{} partitions are needed", several.len()),
        };
        let sides = [
            ("input", &self.graph.inputs, &partition.inputs, "is read by no operator"),
            ("output", &self.graph.outputs, &partition.outputs, "is an input or a constant"),
        ];
        for (side, ours, theirs, what) in sides {
            if let Some(id) = ours.iter().find(|id| !theirs.contains(id)) {
                return format!("{side} {:?} {what}", self.graph.tensor(*id).name);
            }
        }
        "an input or output is listed twice".into()
    }
}

pub(crate) fn main_subgraph(model: &Model) -> Result<&Arc<Subgraph>, Error> {
    let missing = || xnn_model::ErrorKind::Invalid("the model has no subgraph".into()).into();
    model.main().ok_or_else(missing).map_err(Error::Model)
}
