//! tract's end of `cargo xtask bench`: see the crate `xnn-bench`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tract_linalg::multithread::{Executor, set_default_executor};
use tract_tflite::internal::{
    Framework, IntoRunnable, TValue, TVec, Tensor, TypedRunnableModel, TypedSimplePlan,
};
use xnn_bench::{Input, Instance, Runtime, serve};

/// Opens a model with tract, and answers requests for times on standard input
#[derive(Parser)]
struct Args {
    #[arg(long)]
    model: PathBuf,
    /// Folder of inputs
    #[arg(long)]
    inputs: PathBuf,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Name of this side in the requests
    #[arg(long, default_value = "tract")]
    side: String,
}

fn main() -> Result<()> {
    let Args { model, inputs, threads, side } = Args::parse();
    if threads > 1 {
        set_default_executor(Executor::multithread(threads));
    }
    serve(&Tract { model }, &side, &inputs, io::stdin().lock(), io::stdout())
}

struct Tract {
    model: PathBuf,
}

impl Runtime for Tract {
    type Instance = Running;

    fn version(&self) -> String {
        "0.23.9".into()
    }

    fn open(&self, first: Option<&Running>) -> Result<Running> {
        let plan = match first {
            Some(first) => Arc::clone(&first.plan),
            None => {
                let model = tract_tflite::tflite().model_for_path(&self.model)?;
                model.into_optimized()?.into_runnable()?
            }
        };
        Ok(Running { plan, inputs: TVec::new(), outputs: TVec::new() })
    }
}

/// A plan, which instances share.
struct Running {
    plan: Arc<TypedRunnableModel>,
    inputs: TVec<TValue>,
    outputs: TVec<TValue>,
}

impl Instance for Running {
    fn set_inputs(&mut self, inputs: &[Input]) -> Result<()> {
        let plan: &TypedSimplePlan = &self.plan;
        self.inputs.clear();
        for (index, Input { dims, bytes }) in inputs.iter().enumerate() {
            let fact = plan.model().input_fact(index)?;
            let mut tensor = Tensor::zero_dt(fact.datum_type, dims)?;
            let elements = tensor.as_bytes_mut();
            ensure!(elements.len() == bytes.len(), "input {index} has another size here");
            elements.copy_from_slice(bytes);
            self.inputs.push(tensor.into());
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.outputs = self.plan.run(self.inputs.clone()).context("tract")?;
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Vec<u8>>> {
        Ok(self.outputs.iter().map(|output| output.as_bytes().to_vec()).collect())
    }
}
