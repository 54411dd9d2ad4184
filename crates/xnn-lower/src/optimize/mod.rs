//! Passes that make lowered graphs cheaper without changing their results.
//!
//! They run between lowering and compiling, so that the graph that is compiled is the graph that
//! runs. External inputs and outputs keep their order, type and quantization.

mod affine;
mod clamps;
mod conversions;
mod dead_nodes;
mod duplicates;
mod fold_width_into_channels;
mod identities;
mod paddings;
mod patterns;
mod reshapes;
mod rewriter;
mod signed;
mod tables;
mod transposes;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use xnn_format::Graph;

use self::rewriter::Rewriter;
pub use self::signed::SignedLayers;

/// A pass over graphs.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name in options and reports.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    run: Run,
}

/// When a pass runs. The functions change the graph and return the number of changes.
#[derive(Clone, Copy, Debug)]
enum Run {
    /// In each round, until no pass of this kind changes anything.
    EachRound(fn(&mut Rewriter) -> usize),
    /// Once, after all rounds.
    Last(fn(&mut Rewriter, &Options) -> usize),
}

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "dead-nodes",
        about: "removes nodes whose results nothing reads",
        run: Run::EachRound(dead_nodes::run),
    },
    Pass {
        name: "identities",
        about: "removes nodes whose result is their operand",
        run: Run::EachRound(identities::run),
    },
    Pass {
        name: "duplicates",
        about: "merges nodes that compute the same result",
        run: Run::EachRound(duplicates::run),
    },
    Pass {
        name: "reshapes",
        about: "merges consecutive reshapes",
        run: Run::EachRound(reshapes::run),
    },
    Pass {
        name: "transposes",
        about: "merges transposes and moves them behind other nodes, where they cancel out",
        run: Run::EachRound(transposes::run),
    },
    Pass {
        name: "conversions",
        about: "removes conversions from 8 bits to floats and back",
        run: Run::EachRound(conversions::run),
    },
    Pass {
        name: "tables",
        about: "merges a chain of 8-bit functions into one function",
        run: Run::EachRound(tables::run),
    },
    Pass {
        name: "patterns",
        about: "replaces spelled-out functions such as hard-swish and PReLU by one node",
        run: Run::EachRound(patterns::run),
    },
    Pass {
        name: "paddings",
        about: "moves padding into convolutions and maximum poolings",
        run: Run::EachRound(paddings::run),
    },
    Pass {
        name: "fold-width-into-channels",
        about: "merges neighbouring pixels of 8-bit images with few channels into one pixel",
        run: Run::EachRound(fold_width_into_channels::run),
    },
    Pass {
        name: "affine",
        about: "moves products and sums with constants into float weights and biases",
        run: Run::EachRound(affine::run),
    },
    Pass {
        name: "clamps",
        about: "moves bounds into the node that computes the bounded value",
        run: Run::EachRound(clamps::run),
    },
    Pass {
        name: "u8-as-s8",
        about: "computes unsigned 8-bit layers as signed ones",
        run: Run::Last(|rewriter, options| signed::run(rewriter, options.signed_layers)),
    },
];

/// Name of constant folding in options and reports. It is not a pass over graphs: callers of
/// [`partition`](crate::partition()) compute constants before rules see the operators.
pub const CONSTANTS: &str = "constants";

/// Names and one-line descriptions of everything that [`Options::disable`] accepts: constant
/// folding and the passes, in the order in which they run.
pub fn optimizations() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let folding = (CONSTANTS, "computes operators of constants once, before partitioning");
    std::iter::once(folding).chain(PASSES.iter().map(|pass| (pass.name, pass.about)))
}

/// Largest number of rounds over the repeated passes. One pass makes work for another, but each
/// round leaves less to do. Longer chains are rare, and the rest of them stays as it is.
const MAX_ROUNDS: usize = 16;

/// Options of optimization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Run no pass over graphs: they stay as they were lowered.
    pub off: bool,
    /// Names from [`optimizations`] to leave out.
    pub disable: Vec<String>,
    /// Which unsigned 8-bit layers are computed as signed ones.
    pub signed_layers: SignedLayers,
}

impl Options {
    /// Whether `disable` does not contain the name.
    #[must_use]
    pub fn allow(&self, name: &str) -> bool {
        !self.disable.iter().any(|disabled| disabled == name)
    }
}

/// Changes that optimization made to a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Nodes of the lowered graph.
    pub nodes_before: usize,
    /// Nodes of the optimized graph.
    pub nodes_after: usize,
    /// Number of changes by name of the pass, without passes that made none.
    pub changes: BTreeMap<&'static str, usize>,
}

/// Runs the passes that `options` allow.
///
/// Results of integers stay exactly the same unless the description of a pass in
/// `docs/optimization.md` says otherwise. Results of floats change by at most 1e-5 of their range.
#[must_use]
pub fn optimize(graph: Graph, options: &Options) -> (Graph, Report) {
    if options.off {
        let report = Report::unchanged(&graph);
        return (graph, report);
    }
    let nodes_before = graph.nodes.len();
    let mut rewriter = Rewriter::new(graph);
    let mut changes = BTreeMap::new();
    let allowed = || PASSES.iter().filter(|pass| options.allow(pass.name));
    let repeated: Vec<_> = allowed()
        .filter_map(|pass| match pass.run {
            Run::EachRound(run) => Some((pass.name, run)),
            Run::Last(_) => None,
        })
        .collect();
    // Passes since the last change. A graph that all of them left as it is does not change any more.
    let mut idle = 0;
    for &(name, run) in (0..MAX_ROUNDS).flat_map(|_| &repeated) {
        let count = run(&mut rewriter);
        if count > 0 {
            rewriter.settle();
            *changes.entry(name).or_default() += count;
            idle = 0;
        } else {
            idle += 1;
        }
        if idle == repeated.len() {
            break;
        }
    }
    for pass in allowed() {
        let Run::Last(run) = pass.run else { continue };
        let count = run(&mut rewriter, options);
        if count > 0 {
            changes.insert(pass.name, count);
        }
    }
    let graph = rewriter.finish();
    let report = Report { nodes_before, nodes_after: graph.nodes.len(), changes };
    (graph, report)
}

impl Report {
    /// The report of a graph that no pass ran over.
    pub(crate) fn unchanged(graph: &Graph) -> Self {
        let nodes = graph.nodes.len();
        Self { nodes_before: nodes, nodes_after: nodes, changes: BTreeMap::new() }
    }
}

/// Writes `12 XNNPACK nodes instead of 14: dead-nodes 2`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} XNNPACK nodes", self.nodes_after)?;
        if self.nodes_after != self.nodes_before {
            write!(f, " instead of {}", self.nodes_before)?;
        }
        for (position, (pass, count)) in self.changes.iter().enumerate() {
            write!(f, "{} {pass} {count}", if position == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}
