//! Number of threads that compute.

use std::sync::Arc;
use std::thread;

use xnn_format::{Datatype, Graph, Node, NodeOp};
use xnnpack::ThreadPool;

use crate::error::Result;

/// Creates a pool of `threads` threads, including the calling one, limited to the number of
/// processors of this process. `None` if only the calling thread remains.
///
/// More threads than processors are slower: they compete for processors, caches and time slices.
/// Processors that the process may not use (because of affinity or quotas of containers) do not
/// count, and parts of processors do not, either: with 1.5 processors, one thread computes.
///
/// All pools of a process share its processors ([`ThreadPool::sharing`]).
///
/// # Errors
/// `threads` is 0 or exceeds [`ThreadPool::MAX_THREADS`], or memory is exhausted.
pub fn thread_pool(threads: usize) -> Result<Option<Arc<ThreadPool>>> {
    if threads == 1 {
        // Counting processors reads files of the system.
        return Ok(None);
    }
    let processors = thread::available_parallelism().map_or(usize::MAX, Into::into);
    let used = threads.min(processors);
    if used < threads {
        log::info!("using {used} of {threads} threads: there are no more processors");
    }
    match used {
        1 => Ok(None),
        used => Ok(Some(Arc::new(ThreadPool::sharing(used, processors)?))),
    }
}

/// Average number of float multiplications per operator below which no number of threads is worth
/// trying: threads meet after each operator, which takes half a microsecond and more.
const WORTH_TRYING: f64 = 10e3;
/// Average number of float multiplications per operator below which several threads are slower in
/// the first run, which has to wake them.
const WORTH_WAKING: f64 = 250e3;
/// Average number of float multiplications per operator from which several threads are faster on
/// every processor, except for a few per cent that small operators between large ones may cost.
const WORTH_MEETING: f64 = 2e6;
/// Number of multiplications of 8-bit integers in the time of one float multiplication.
const INTEGER_PRODUCTS: f64 = 2.5;

/// Whether several threads are faster than one, judged by a graph's multiplications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOfThreads {
    /// Several threads are slower.
    None,
    /// It depends on the processor, but not in the first run, in which several threads are slower.
    Later,
    /// It depends on the processor, or the graph has no multiplications.
    Unsure,
    Sure,
}

impl UseOfThreads {
    pub(crate) fn for_work(graph: &Graph) -> Self {
        let work: f64 = graph.nodes.iter().map(|node| multiplications(graph, node)).sum();
        match work / graph.nodes.len() as f64 {
            work if work >= WORTH_MEETING => Self::Sure,
            work if work > 0.0 && work < WORTH_TRYING => Self::None,
            work if work > 0.0 && work < WORTH_WAKING => Self::Later,
            _ => Self::Unsure,
        }
    }
}

/// Multiplications of a node, in equivalents of float multiplications.
fn multiplications(graph: &Graph, node: &Node) -> f64 {
    let products = graph.node_macs(node) as f64;
    let operand = match &node.op {
        NodeOp::Conv2d(layer) | NodeOp::DepthwiseConv2d(layer) | NodeOp::ConvTranspose2d(layer) => {
            layer.input
        }
        NodeOp::FullyConnected { input, .. }
        | NodeOp::BatchMatrixMultiply { inputs: [input, _], .. } => *input,
        // Other nodes multiply floats, or nothing.
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
    fn pools_have_at_most_as_many_threads_as_processors() -> Result<()> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = |count| thread_pool(count).map(|pool| pool.map_or(1, |pool| pool.threads()));
        assert_eq!(threads(1)?, 1);
        assert_eq!(threads(2)?, processors.min(2));
        assert_eq!(threads(processors)?, processors);
        assert_eq!(threads(processors + 1)?, processors);
        assert!(thread_pool(0).is_err());
        Ok(())
    }

    /// A layer with `size` rows, inputs and outputs.
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
    fn the_use_of_threads_follows_from_the_work() {
        let use_for = |datatype, size| UseOfThreads::for_work(&layer(datatype, size));
        // 21^3 is less than 10 thousand, 22^3 is not. Integer multiplications count less.
        assert_eq!(use_for(Datatype::F32, 21), UseOfThreads::None);
        assert_eq!(use_for(Datatype::F32, 22), UseOfThreads::Later);
        assert_eq!(use_for(Datatype::QInt8, 29), UseOfThreads::None);
        assert_eq!(use_for(Datatype::QInt8, 30), UseOfThreads::Later);
        // 62^3 is less than 250 thousand.
        assert_eq!(use_for(Datatype::F32, 62), UseOfThreads::Later);
        assert_eq!(use_for(Datatype::F32, 63), UseOfThreads::Unsure);
        assert_eq!(use_for(Datatype::QInt8, 85), UseOfThreads::Later);
        assert_eq!(use_for(Datatype::QInt8, 86), UseOfThreads::Unsure);
        assert_eq!(use_for(Datatype::F32, 125), UseOfThreads::Unsure);
        assert_eq!(use_for(Datatype::F32, 126), UseOfThreads::Sure);
        let mut two = layer(Datatype::F32, 126);
        two.nodes.push(two.nodes[0].clone());
        assert_eq!(UseOfThreads::for_work(&two), UseOfThreads::Sure);
        assert_eq!(UseOfThreads::for_work(&Graph::default()), UseOfThreads::Unsure);
    }
}
