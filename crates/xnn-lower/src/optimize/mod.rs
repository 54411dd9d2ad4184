//! Passes over lowered graphs: the same results with less work.
//!
//! One comes before them: [`CONSTANTS`] are computed before operators are looked at.
//!
//! They run between lowering and compiling, so that what is compiled before it
//! is claimed is what runs. External inputs and outputs keep their order, type
//! and quantization, whatever happens between them.

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

/// A rewriting of graphs.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What options and reports call it.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Changes the graph; how many changes there were. `None` for what is done before there is one.
    run: Option<fn(&mut Rewriter) -> usize>,
}

/// Name of the pass that computes operators of constants; whoever calls
/// [`partition`](crate::partition()) has done it.
pub const CONSTANTS: &str = "constants";

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: CONSTANTS,
        about: "computes operators of constants once, before operators are chosen",
        run: None,
    },
    Pass {
        name: "dead-nodes",
        about: "removes nodes whose results nothing reads",
        run: Some(dead_nodes::run),
    },
    Pass {
        name: "identities",
        about: "removes nodes whose result is their operand",
        run: Some(identities::run),
    },
    Pass {
        name: "duplicates",
        about: "computes once what several nodes compute",
        run: Some(duplicates::run),
    },
    Pass {
        name: "reshapes",
        about: "makes one of several reshapes in a row",
        run: Some(reshapes::run),
    },
    Pass {
        name: "transposes",
        about: "merges transposes and moves them behind nodes, where they cancel out",
        run: Some(transposes::run),
    },
    Pass {
        name: "conversions",
        about: "removes conversions from 8 bits to floats and back",
        run: Some(conversions::run),
    },
    Pass {
        name: "tables",
        about: "makes one function of a chain of 8-bit functions",
        run: Some(tables::run),
    },
    Pass {
        name: "patterns",
        about: "puts one node for hard-swish, PReLU and others that are spelled out",
        run: Some(patterns::run),
    },
    Pass {
        name: "paddings",
        about: "lets convolutions pad with zeros, and maxima with what is lowest",
        run: Some(paddings::run),
    },
    Pass {
        name: "columns",
        about: "makes one pixel of several of 8-bit images with few channels",
        run: Some(fold_width_into_channels::run),
    },
    Pass {
        name: "affine",
        about: "multiplies and adds constants into float weights and biases",
        run: Some(affine::run),
    },
    Pass { name: "clamps", about: "lets nodes bound their results", run: Some(clamps::run) },
];

/// Rounds over all passes: one pass makes work for another, but each round that
/// changes something leaves less to do. Chains longer than this are rare and
/// stay as they are.
const MAX_ROUNDS: usize = 16;

/// What a person may choose about optimization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Run no pass over graphs: they stay as they were lowered.
    pub off: bool,
    /// Passes to leave out, by [`Pass::name`].
    pub disable: Vec<String>,
    /// Which unsigned 8-bit layers are computed as signed ones.
    pub signed_layers: SignedLayers,
}

impl Options {
    /// Whether this pass is not left out by name.
    #[must_use]
    pub fn allow(&self, pass: &str) -> bool {
        !self.disable.iter().any(|name| name == pass)
    }
}

/// What optimization did to a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Nodes of the lowered graph.
    pub nodes_before: usize,
    /// Nodes of the optimized graph.
    pub nodes_after: usize,
    /// How many changes each pass made, by name; passes without any are absent.
    pub changes: BTreeMap<&'static str, usize>,
}

/// Runs the passes that `options` allow until none finds anything to change.
///
/// Results stay the same up to rounding: exactly for integers unless a pass
/// says otherwise, within 1e-5 of the range for floats.
#[must_use]
pub fn optimize(graph: Graph, options: &Options) -> (Graph, Report) {
    if options.off {
        let report = Report::unchanged(&graph);
        return (graph, report);
    }
    let nodes_before = graph.nodes.len();
    let mut rewriter = Rewriter::new(graph);
    let mut changes = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for pass in PASSES.iter().filter(|pass| options.allow(pass.name)) {
            let count = pass.run.map_or(0, |run| run(&mut rewriter));
            if count > 0 {
                rewriter.settle();
                *changes.entry(pass.name).or_default() += count;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    // Last: the passes need not know what it makes.
    let signed = signed::run(&mut rewriter, options.signed_layers);
    if signed > 0 {
        changes.insert(signed::NAME, signed);
    }
    let graph = rewriter.finish();
    let report = Report { nodes_before, nodes_after: graph.nodes.len(), changes };
    (graph, report)
}

impl Report {
    /// What there is to say where nothing was done.
    pub(crate) fn unchanged(graph: &Graph) -> Self {
        let nodes = graph.nodes.len();
        Self { nodes_before: nodes, nodes_after: nodes, changes: BTreeMap::new() }
    }
}

/// `12 XNNPACK nodes instead of 14: dead-nodes 2`.
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
