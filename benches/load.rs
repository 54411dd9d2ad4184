//! Cost of a start: opening a model or blob, creating a session, and the first run.
//!
//! `cargo bench --bench load -- FILE...` prints times in milliseconds, each the least and the median
//! of several starts in one process. The file is in the system's cache; XNNPACK is initialized.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use xnn_delegate::SessionOptions;
use xnn_delegate::runtime::{Session, open};

const STARTS: usize = 31;

fn main() -> Result<()> {
    // `cargo bench` adds an argument of its own.
    for file in env::args().skip(1).filter(|one| one != "--bench") {
        measure(Path::new(&file)).with_context(|| file.clone())?;
    }
    Ok(())
}

fn measure(path: &Path) -> Result<()> {
    let mut steps: [Vec<Duration>; 3] = Default::default();
    for _ in 0..STARTS {
        let mut times = Vec::with_capacity(steps.len());
        let start = Instant::now();
        let program = open(path)?;
        times.push(start.elapsed());
        let mut session = Session::new(&program, &SessionOptions::default())?;
        times.push(start.elapsed());
        session.run()?;
        times.push(start.elapsed());
        for (step, time) in steps.iter_mut().zip(times) {
            step.push(time);
        }
    }
    println!("{}", path.display());
    for (name, mut times) in ["open", "open, session", "open, session, run"].into_iter().zip(steps)
    {
        times.sort_unstable();
        let ms = |index: usize| times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        println!("  {name:<20} {:>8.3} {:>8.3}", ms(0), ms(STARTS / 2));
    }
    Ok(())
}
