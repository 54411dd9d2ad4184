//! A peer's end.

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use crate::inputs::Input;
use crate::memory::Base;
use crate::processor::processor_time;
use crate::protocol::{Facts, Opened, Request, Runs, Side, Start};

/// Runs after the first before memory is counted.
const SETTLING: usize = 3;

/// A runtime with a model to open.
pub trait Runtime {
    /// A model that runs.
    type Instance: Instance;

    /// The runtime's version.
    fn version(&self) -> String;

    /// Opens the model; what later instances share with the first is the runtime's matter.
    ///
    /// # Errors
    /// The runtime cannot run the model.
    fn open(&self, first: Option<&Self::Instance>) -> Result<Self::Instance>;

    /// Returns facts about the model.
    ///
    /// # Errors
    /// The runtime does not know them.
    fn facts(&self) -> Result<Facts> {
        bail!("this runtime knows nothing of the model")
    }
}

/// A model with the memory to run it.
pub trait Instance: Send {
    /// Gives the inputs, in the model's order.
    ///
    /// # Errors
    /// The model has others.
    fn set_inputs(&mut self, inputs: &[Input]) -> Result<()>;

    /// Runs once.
    ///
    /// # Errors
    /// The run fails.
    fn run(&mut self) -> Result<()>;

    /// Elements of the outputs, in the model's order.
    ///
    /// # Errors
    /// They cannot be had.
    fn outputs(&self) -> Result<Vec<Vec<u8>>>;

    /// Delegated partitions.
    fn partitions(&self) -> Option<u64> {
        None
    }
}

/// Opens the model, prints what that cost, and answers requests until there are no more.
///
/// # Errors
/// A pipe is closed; a request is none, or cannot be answered.
pub fn serve<R: Runtime>(
    runtime: &R,
    side: &str,
    inputs: &Path,
    requests: impl BufRead,
    mut answers: impl Write,
) -> Result<()> {
    let inputs = Input::read_all(inputs)?;
    let base = Base::now()?;
    let opened = open(runtime, &inputs, base);
    let state = match &opened {
        Ok((_, start)) => Side::Ready(start.clone()),
        Err(error) => Side::Failed { error: one_line(error) },
    };
    let mut answer = |value: Value| -> Result<()> {
        writeln!(answers, "{value}")?;
        Ok(answers.flush()?)
    };
    let sides = [(side.to_owned(), state)].into();
    answer(serde_json::to_value(Opened { version: runtime.version(), sides })?)?;
    let Ok((first, _)) = opened else { return Ok(()) };
    let mut serving = Serving { runtime, side, inputs: &inputs, base, first, more: Vec::new() };
    for line in requests.lines() {
        answer(serving.answer(&Request::parse(&line?)?)?)?;
    }
    Ok(())
}

fn open<R: Runtime>(runtime: &R, inputs: &[Input], base: Base) -> Result<(R::Instance, Start)> {
    let begin = Instant::now();
    let mut instance = runtime.open(None)?;
    let load = begin.elapsed();
    instance.set_inputs(inputs)?;
    let begin = Instant::now();
    instance.run()?;
    let first = begin.elapsed();
    for _ in 0..SETTLING {
        instance.run()?;
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let start = Start {
        load_ms: ms(load),
        first_ms: ms(first),
        memory: base.growth()?,
        partitions: instance.partitions(),
    };
    Ok((instance, start))
}

struct Serving<'a, R: Runtime> {
    runtime: &'a R,
    side: &'a str,
    inputs: &'a [Input],
    base: Base,
    first: R::Instance,
    more: Vec<R::Instance>,
}

impl<R: Runtime> Serving<'_, R> {
    fn answer(&mut self, request: &Request) -> Result<Value> {
        match request {
            Request::Time { side, millis } => {
                self.expect(side)?;
                timed(|| run_for(&mut self.first, Duration::from_millis(*millis)))
            }
            Request::Instances { side, count } => {
                self.expect(side)?;
                self.open(*count)?;
                Ok(serde_json::to_value(self.base.growth()?)?)
            }
            Request::Streams { side, count, millis } => {
                self.expect(side)?;
                self.open(*count)?;
                let instances = [&mut self.first].into_iter().chain(&mut self.more);
                timed(|| at_once(instances.take(*count), Duration::from_millis(*millis)))
            }
            Request::Outputs { side, folder } => {
                self.expect(side)?;
                // Runs may have left state behind.
                let outputs = self.fork()?.outputs()?;
                for (index, output) in outputs.iter().enumerate() {
                    let path = Path::new(folder).join(format!("out_{index}.bin"));
                    fs::write(&path, output).with_context(|| path.display().to_string())?;
                }
                Ok(json!(outputs.len()))
            }
            Request::Facts => Ok(serde_json::to_value(self.runtime.facts()?)?),
        }
    }

    /// Opens the model until there are `count` instances.
    fn open(&mut self, count: usize) -> Result<()> {
        while self.more.len() + 1 < count {
            let another = self.fork()?;
            self.more.push(another);
        }
        Ok(())
    }

    /// One more instance, which has run once.
    fn fork(&self) -> Result<R::Instance> {
        let mut instance = self.runtime.open(Some(&self.first))?;
        instance.set_inputs(self.inputs)?;
        instance.run()?;
        Ok(instance)
    }

    fn expect(&self, side: &str) -> Result<()> {
        ensure!(side == self.side, "there is no side {side:?} here, but {:?}", self.side);
        Ok(())
    }
}

/// [`Runs`], with the processor time of this process while they run.
fn timed(run: impl FnOnce() -> Result<Vec<f64>>) -> Result<Value> {
    let before = processor_time()?;
    let us = run()?;
    let spent = processor_time()?.saturating_sub(before);
    Ok(serde_json::to_value(Runs { us, cpu_us: spent.as_secs_f64() * 1e6 })?)
}

/// Microseconds of each run; at least one.
fn run_for(instance: &mut impl Instance, time: Duration) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time || times.is_empty() {
        let begin = Instant::now();
        instance.run()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// Microseconds of each run of all instances, which run at the same time.
fn at_once<'a, I: Instance + 'a>(
    instances: impl Iterator<Item = &'a mut I>,
    time: Duration,
) -> Result<Vec<f64>> {
    thread::scope(|scope| {
        let start = |instance: &'a mut I| scope.spawn(move || run_for(instance, time));
        let streams: Vec<_> = instances.map(start).collect();
        let mut times = Vec::new();
        for stream in streams {
            times.extend(stream.join().map_err(|_| anyhow!("a stream ended without a result"))??);
        }
        Ok(times)
    })
}

/// The error and its causes, in the length of a line.
fn one_line(error: &anyhow::Error) -> String {
    const LENGTH: usize = 200;
    let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(LENGTH).collect()
}
