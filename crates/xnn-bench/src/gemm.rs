//! A large fully connected layer of round dimensions, to measure the processor's peak rate of
//! multiplications.

use std::iter;

use anyhow::Result;
use clap::ValueEnum;
use xnn_bench::{Facts, Input, Instance, Runtime};
use xnn_delegate::SessionOptions;
use xnn_delegate::blob::{Datatype, Graph, Quantization};
use xnn_delegate::runtime::{Program, ProgramOptions, Session};
use xnn_format::{Node, NodeOp, Value};

/// Rows, and channels in and out: weights fit into caches of the second level, and rows take long enough.
const ROWS: usize = 1536;
const CHANNELS: usize = 512;

/// Types of operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Singles.
    #[default]
    Fp32,
    /// 8-bit integers, weights with a scale for each channel.
    Int8,
}

pub(crate) struct Gemm {
    pub(crate) kind: Kind,
    pub(crate) threads: usize,
}

impl Gemm {
    fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        let [(activations, quantization), (weights, weights_quantization)] = match self.kind {
            Kind::Fp32 => {
                [(Datatype::F32, Quantization::None), (Datatype::F32, Quantization::None)]
            }
            Kind::Int8 => {
                let scales = iter::repeat_n(1.0 / 128.0, CHANNELS).collect();
                let channels = Quantization::PerChannel { scales, channel_dim: 0 };
                let tensor = Quantization::PerTensor { scale: 1.0 / 128.0, zero_point: 0 };
                [(Datatype::QInt8, tensor), (Datatype::QcInt8, channels)]
            }
        };
        let data: Vec<u8> = match self.kind {
            Kind::Fp32 => 0.5f32.to_le_bytes().repeat(CHANNELS * CHANNELS),
            Kind::Int8 => vec![1; CHANNELS * CHANNELS],
        };
        let value = |dims: &[usize]| Value::new(activations, quantization.clone(), dims);
        let input = graph.push_value(value(&[ROWS, CHANNELS]));
        let filter = Value::new(weights, weights_quantization, &[CHANNELS, CHANNELS]);
        let filter = graph.push_value(filter.with_data(data.into()));
        let output = graph.push_value(value(&[ROWS, CHANNELS]));
        let layer = NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false };
        graph.nodes.push(Node::new(layer));
        (graph.inputs, graph.outputs) = (vec![input], vec![output]);
        graph
    }
}

impl Runtime for Gemm {
    type Instance = Multiplication;

    fn version(&self) -> String {
        crate::model::version()
    }

    fn open(&self, _: Option<&Multiplication>) -> Result<Multiplication> {
        let program = Program::new(self.graph(), &ProgramOptions::default())?;
        let options = SessionOptions { threads: self.threads, ..SessionOptions::default() };
        let mut session = Session::new(&program, &options)?;
        match self.kind {
            Kind::Fp32 => session.input_as_mut::<f32>(0)?.fill(0.5),
            Kind::Int8 => session.input_mut(0).fill(1),
        }
        Ok(Multiplication(session))
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts {
            operators: 1,
            delegated: 1,
            partitions: 1,
            macs: (ROWS * CHANNELS * CHANNELS) as u64,
            eight_bit: self.kind == Kind::Int8,
            packed_bytes: 0,
        })
    }
}

pub(crate) struct Multiplication(Session);

impl Instance for Multiplication {
    fn set_inputs(&mut self, _: &[Input]) -> Result<()> {
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        Ok(self.0.run()?)
    }

    fn outputs(&self) -> Result<Vec<Vec<u8>>> {
        Ok(vec![self.0.output(0).to_vec()])
    }
}
