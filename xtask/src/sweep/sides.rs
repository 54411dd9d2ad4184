//! Both sides, and their times of a model.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use xnn_bench::{Peer, median, ratio};

use super::levels::Level;
use super::report::{Model, Timing};
use crate::bench::quietly;

/// LiteRT's time before the one that counts. `xnn bench` has a longer one of its own.
const WARM_UP: Duration = Duration::from_millis(20);
/// Time of a turn that counts, of each side.
const MEASURED: Duration = Duration::from_millis(30);
/// Fewest and most runs of this project in a turn.
const RUNS: (f64, f64) = (3.0, 20_000.0);

/// This project's program, which starts for each turn, and a process of LiteRT.
pub struct Sides<'a> {
    pub xnn: &'a Path,
    pub level: &'a Level,
    pub threads: u16,
    pub litert: Peer,
}

/// The output of `xnn bench --json`.
#[derive(Deserialize)]
struct Bench {
    median_ms: f64,
    operators: usize,
    delegated: usize,
}

impl Sides<'_> {
    fn xnn(&self, model: &Model, runs: f64) -> Result<Bench> {
        let mut command = Command::new(self.xnn);
        command.arg("bench").arg(&model.file).arg("--json");
        command.args(["--threads", &self.threads.to_string(), "--runs", &format!("{runs:.0}")]);
        self.level.limit(&mut command);
        let said = quietly(&mut command).context("xnn")?;
        serde_json::from_slice(&said).context("the output of xnn bench")
    }

    /// Median of microseconds.
    fn litert(&mut self, model: &Model, time: Duration) -> Result<f64> {
        let opened = self.litert.start_of(&model.name).map(drop);
        let times = opened.and_then(|()| self.litert.time(&model.name, time));
        Ok(median(&times.context("LiteRT")?.us))
    }
}

/// Times of a model.
#[derive(Debug, Default)]
pub struct Times {
    /// Medians of each round, in microseconds; lists of one, as [`ratio`] takes them.
    xnn: Vec<Vec<f64>>,
    litert: Vec<Vec<f64>>,
    delegated: bool,
    litert_delegated: bool,
}

impl Times {
    /// Adds rounds of turns, in reverse order in every second one.
    pub fn take(&mut self, sides: &mut Sides<'_>, model: &Model, rounds: usize) -> Result<()> {
        for round in 0..rounds {
            let warm = sides.litert(model, WARM_UP)?;
            let known = self.xnn.last().map_or(warm, |last| median(last));
            let runs = (MEASURED.as_micros() as f64 / known).clamp(RUNS.0, RUNS.1);
            let (ours, theirs) = if round % 2 == 0 {
                let theirs = sides.litert(model, MEASURED)?;
                (sides.xnn(model, runs)?, theirs)
            } else {
                let ours = sides.xnn(model, runs)?;
                sides.litert(model, WARM_UP)?;
                (ours, sides.litert(model, MEASURED)?)
            };
            self.xnn.push(vec![1e3 * ours.median_ms]);
            self.litert.push(vec![theirs]);
            self.delegated = ours.delegated == ours.operators;
        }
        let start = sides.litert.start_of(&model.name)?;
        self.litert_delegated = start.partitions.is_some_and(|count| count > 0);
        Ok(())
    }

    /// Median of the rounds' ratios.
    pub fn ratio(&self) -> f64 {
        ratio(&self.xnn, &self.litert)
    }

    /// In words.
    pub fn in_brief(&self) -> String {
        let [ours, theirs] = [&self.xnn, &self.litert].map(|times| median(&times.concat()));
        format!("{ours:.1} us, LiteRT {theirs:.1} us, {:.2}", self.ratio())
    }

    pub fn timing(&self, model: &Model) -> Timing {
        Timing {
            model: model.clone(),
            xnn_us: median(&self.xnn.concat()),
            litert_us: median(&self.litert.concat()),
            ratio: self.ratio(),
            rounds: self.xnn.len(),
            delegated: self.delegated,
            litert_delegated: self.litert_delegated,
        }
    }
}
