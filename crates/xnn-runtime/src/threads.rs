//! How many threads compute.

use std::sync::Arc;
use std::thread;

use xnn_format::{Datatype, Graph, Node, NodeOp};
use xnnpack::ThreadPool;

use crate::error::Result;

/// A pool of `threads` threads, the calling one included, but not of more than this process has
/// processors for; `None` where that leaves the calling thread alone.
///
/// Threads wait for each other after every operator, and they spin. One too many waits for its turn on
/// a processor where another spins: with two threads on one processor a run takes thousands of times as
/// long. Processors that the process may not use (affinity, quotas of containers) do not count.
///
/// # Errors
/// `threads` is 0 or too many, or memory is exhausted.
pub fn thread_pool(threads: usize) -> Result<Option<Arc<ThreadPool>>> {
    if threads == 1 {
        // To count processors, the system's files are read.
        return Ok(None);
    }
    let processors = thread::available_parallelism().map_or(usize::MAX, Into::into);
    let used = threads.min(processors);
    if used < threads {
        log::info!("{used} of {threads} threads compute: there are no more processors");
    }
    match used {
        1 => Ok(None),
        used => Ok(Some(Arc::new(ThreadPool::new(used)?))),
    }
}

/// Multiplications of floats that an operator must have, in the mean, for several threads to be faster than
/// one on any processor: threads meet after each operator, which takes microseconds (`docs/architecture.md`).
const WORTH_TRYING: f64 = 30e3;
/// The same for them to be faster on all processors, but for a few per cent that small operators between large ones may cost.
const WORTH_MEETING: f64 = 2e6;
/// Multiplications of 8-bit integers in the time of one of floats.
const INTEGER_PRODUCTS: f64 = 2.5;

/// Whether several threads compute a graph faster than one, by its multiplications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOfThreads {
    /// They are slower.
    None,
    /// It depends on the processor, or there is nothing to multiply.
    Unsure,
    Sure,
}

impl UseOfThreads {
    pub(crate) fn for_work(graph: &Graph) -> Self {
        let work: f64 = graph.nodes.iter().map(|node| multiplications(graph, node)).sum();
        match work / graph.nodes.len() as f64 {
            work if work >= WORTH_MEETING => Self::Sure,
            work if work > 0.0 && work < WORTH_TRYING => Self::None,
            _ => Self::Unsure,
        }
    }
}

/// In terms of floats.
fn multiplications(graph: &Graph, node: &Node) -> f64 {
    let products = graph.node_macs(node) as f64;
    let operand = match &node.op {
        NodeOp::Conv2d(layer) | NodeOp::DepthwiseConv2d(layer) | NodeOp::ConvTranspose2d(layer) => {
            layer.input
        }
        NodeOp::FullyConnected { input, .. }
        | NodeOp::BatchMatrixMultiply { inputs: [input, _], .. } => *input,
        // Others have floats, or nothing to multiply.
        _ => return products,
    };
    match graph.value(operand).map(|value| value.datatype) {
        Some(Datatype::F32 | Datatype::F16) => products,
        _ => products / INTEGER_PRODUCTS,
    }
}

#[cfg(test)]
mod tests {
    use xnn_format::{Quantization, Value};

    use super::*;

    #[test]
    fn there_are_no_more_threads_than_processors() -> Result<()> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = |count| thread_pool(count).map(|pool| pool.map_or(1, |pool| pool.threads()));
        assert_eq!(threads(1)?, 1);
        assert_eq!(threads(2)?, processors.min(2));
        assert_eq!(threads(processors)?, processors);
        assert_eq!(threads(processors + 1)?, processors);
        assert!(thread_pool(0).is_err());
        Ok(())
    }

    /// A layer with as many rows as inputs and outputs.
    fn layer(datatype: Datatype, size: usize) -> Graph {
        let mut graph = Graph::default();
        let mut value =
            || graph.push_value(Value::new(datatype, Quantization::None, &[size, size]));
        let (input, filter, output) = (value(), value(), value());
        let op = NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false };
        graph.nodes.push(Node::new(op));
        graph
    }

    #[test]
    fn use_is_by_the_work_of_operators() {
        let use_for = |datatype, size| UseOfThreads::for_work(&layer(datatype, size));
        // 31^3 is less than 30 thousand, 32^3 is not; integers are worth less.
        assert_eq!(use_for(Datatype::F32, 31), UseOfThreads::None);
        assert_eq!(use_for(Datatype::F32, 32), UseOfThreads::Unsure);
        assert_eq!(use_for(Datatype::QInt8, 42), UseOfThreads::None);
        assert_eq!(use_for(Datatype::QInt8, 43), UseOfThreads::Unsure);
        assert_eq!(use_for(Datatype::F32, 125), UseOfThreads::Unsure);
        assert_eq!(use_for(Datatype::F32, 126), UseOfThreads::Sure);
        let mut two = layer(Datatype::F32, 126);
        two.nodes.push(two.nodes[0].clone());
        assert_eq!(UseOfThreads::for_work(&two), UseOfThreads::Sure);
        assert_eq!(UseOfThreads::for_work(&Graph::default()), UseOfThreads::Unsure);
    }
}
