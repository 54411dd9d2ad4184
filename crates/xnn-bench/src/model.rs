//! Models and blobs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use tempfile::tempdir;
use xnn_bench::{Facts, Input, Instance, Runtime};
use xnn_delegate::lower::{Delegation, Report};
use xnn_delegate::{PartitionOptions, Runner, RunnerOptions, SessionOptions, build};

/// Operators with weights, which are their second input.
const LAYERS: [&str; 3] = ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"];

/// A file, to be run with so many threads.
pub(crate) struct Model {
    pub(crate) path: PathBuf,
    pub(crate) threads: usize,
}

impl Model {
    fn session(&self) -> SessionOptions {
        SessionOptions { threads: self.threads, ..SessionOptions::default() }
    }
}

impl Runtime for Model {
    type Instance = Running;

    fn version(&self) -> String {
        version()
    }

    fn open(&self, first: Option<&Running>) -> Result<Running> {
        Ok(Running(match first {
            Some(first) => first.0.fork()?,
            None => Runner::builder(&self.path).session(self.session()).build()?,
        }))
    }

    fn facts(&self) -> Result<Facts> {
        let model = xnn_delegate::Model::open(&self.path)?;
        let graph = model.main().context("the model has no subgraph")?;
        let report = Delegation::new(graph, &PartitionOptions::default())?.report();
        let folder = tempdir()?;
        let mut options = RunnerOptions::default();
        options.program.cache_dir = Some(folder.path().to_owned());
        let coverage = Runner::builder(&self.path).options(options).build()?.coverage();
        let mut packed_bytes = 0;
        for entry in fs::read_dir(&folder)? {
            packed_bytes += entry?.metadata()?.len();
        }
        Ok(Facts {
            operators: coverage.operators,
            delegated: coverage.delegated,
            partitions: coverage.partitions,
            macs: report.partitions.iter().map(|partition| partition.macs).sum(),
            eight_bit: eight_bit(&report),
            packed_bytes,
        })
    }
}

pub(crate) fn version() -> String {
    format!("{}, XNNPACK {}", build::VERSION, build::XNNPACK_REVISION)
}

/// Whether most layers have 8-bit weights.
fn eight_bit(report: &Report) -> bool {
    let layers = report.nodes.iter().filter(|node| LAYERS.contains(&node.op.as_str()));
    let weights = layers.filter_map(|node| node.inputs.get(1));
    let (eight, other): (Vec<_>, Vec<_>) =
        weights.partition(|tensor| ["i8", "u8"].contains(&tensor.dtype.as_str()));
    eight.len() > other.len()
}

/// An instance.
pub(crate) struct Running(Runner);

impl Instance for Running {
    fn set_inputs(&mut self, inputs: &[Input]) -> Result<()> {
        let changed: Vec<(usize, &[usize])> = (inputs.iter().map(|input| input.dims.as_slice()))
            .enumerate()
            .filter(|(at, dims)| self.0.inputs().get(*at).is_some_and(|one| one.dims != *dims))
            .collect();
        if !changed.is_empty() {
            self.0.resize_inputs(&changed)?;
        }
        for (index, Input { bytes, .. }) in inputs.iter().enumerate() {
            let input = self.0.input_bytes_mut(index)?;
            ensure!(input.len() == bytes.len(), "input {index} has another size here");
            input.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        Ok(self.0.run()?)
    }

    fn outputs(&self) -> Result<Vec<Vec<u8>>> {
        let outputs = 0..self.0.outputs().len();
        outputs.map(|index| Ok(self.0.output_bytes(index)?.to_vec())).collect()
    }

    fn partitions(&self) -> Option<u64> {
        u64::try_from(self.0.coverage().partitions).ok()
    }
}
