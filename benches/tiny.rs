//! Cost of a call beside its arithmetic: a fully connected layer from 5 values to 3, over two rows.
//!
//! `cargo bench --bench tiny` prints the time of a call, in nanoseconds.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use xnn_delegate::SessionOptions;
use xnn_delegate::blob::{Datatype, Graph, Quantization};
use xnn_delegate::runtime::{Program, ProgramOptions, Session};
use xnn_format::{Node, NodeOp, Value};

/// Calls that are timed together.
const BATCH: u32 = 1000;
/// Times that are taken.
const BATCHES: usize = 1001;

fn main() -> Result<()> {
    let mut graph = Graph::default();
    let value = |dims: &[usize]| Value::new(Datatype::F32, Quantization::None, dims);
    let ones = |count: usize| [1f32.to_le_bytes()].repeat(count).concat();
    let input = graph.push_value(value(&[2, 5]));
    let filter = graph.push_value(value(&[3, 5]).with_data(ones(15).into()));
    let bias = Some(graph.push_value(value(&[3]).with_data(ones(3).into())));
    let output = graph.push_value(value(&[2, 3]));
    let layer = NodeOp::FullyConnected { input, filter, bias, output, sparse: false };
    graph.nodes.push(Node::new(layer));
    (graph.inputs, graph.outputs) = (vec![input], vec![output]);

    let program = Program::new(graph, &ProgramOptions::default())?;
    let mut session = Session::new(&program, &SessionOptions::default())?;
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BATCH {
            session.input_as_mut::<f32>(0)?.fill(black_box(1.0));
            session.run()?;
            black_box(session.output_as::<f32>(0)?);
        }
        times.push(start.elapsed() / BATCH);
    }
    times.sort_unstable();
    let at = |index: usize| times.get(index).map_or(0, Duration::as_nanos);
    println!("a call takes {} ns (median; minimum {} ns)", at(BATCHES / 2), at(0));
    Ok(())
}
