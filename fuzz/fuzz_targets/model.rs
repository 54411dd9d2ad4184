//! Reads bytes as a model and runs it. A model that runs on the reference kernels must also run
//! with delegation.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::{ModelLimits, Model, RunnerOptions, RunnerBuilder};

fuzz_target!(|bytes: &[u8]| {
    let mut limits = ModelLimits::default();
    (limits.max_tensor_bytes, limits.max_loop_iterations) = (1 << 16, 20);
    let Ok(model) = Model::from_bytes_with(bytes.to_vec(), &limits) else { return };

    let mut options = InterpOptions::default();
    options.limits.clone_from(&limits);
    let reference = Interpreter::new(&model, Entry::Main, &options).and_then(|mut it| {
        it.run()?;
        (0..it.outputs()).try_for_each(|output| it.output(output).map(drop))
    });
    let mut options = RunnerOptions::default();
    options.limits = limits;
    let delegated = RunnerBuilder::from_model(&model).options(options).build().and_then(|mut it| it.run());
    if let (Ok(()), Err(error)) = (reference, delegated) {
        panic!("runs on the reference kernels only: {error}");
    }
});
