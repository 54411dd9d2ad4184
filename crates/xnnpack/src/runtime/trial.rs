//! Trials of threads: whether several are faster than one, for a whole run and for each operator.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::status::Result;

/// Number of runs of a turn that are not measured, since caches and threads are in another state,
/// and of measured ones.
const UNMEASURED: usize = 2;
const MEASURED: usize = 3;
const TURN: usize = UNMEASURED + MEASURED;
/// Turns of a trial. All threads come first, as the first runs of a session are slower.
const TURNS: [Threads; 4] = [Threads::All, Threads::One, Threads::All, Threads::Each];
/// Number of runs of a trial, and of runs until the next one: other processes may have disturbed
/// the last one.
const TRIAL: usize = TURNS.len() * TURN;
const PERIOD: usize = 1000;
/// Maximal time with several threads, relative to one thread, for which they are used.
const GAIN: f64 = 0.97;

/// Threads that compute a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    All,
    /// The calling thread only.
    One,
    /// For each operator the faster choice: all threads, or the calling one.
    Each,
}

/// Measures the first runs of a runtime, and of every thousand, to choose threads.
///
/// Threads synchronize after every operator, and read data that others have written. This takes
/// from half a microsecond to several, depending on the processors and their connection.
#[derive(Debug)]
pub(super) struct Trial {
    runs: usize,
    /// Least times, in the order of [`Threads`].
    least: [Times; 3],
    /// For each operator, whether the calling thread computes it alone. All `false` except for
    /// [`Threads::Each`].
    alone: Vec<bool>,
}

/// Times of a run and of its operators.
#[derive(Clone, Debug)]
struct Times {
    run: Duration,
    operators: Vec<Duration>,
}

impl Trial {
    /// Trial of a runtime with `operators` operators that can run one by one.
    pub(super) fn new(operators: usize) -> Self {
        let never = Times { run: Duration::MAX, operators: vec![Duration::MAX; operators] };
        let least = [never.clone(), never.clone(), never];
        Self { runs: 0, least, alone: vec![false; operators] }
    }

    /// Threads of the next run.
    pub(super) fn threads(&self) -> Threads {
        TURNS.get(self.runs / TURN).copied().unwrap_or_else(|| self.fastest())
    }

    /// Runs all operators by calling `run` for ranges of them, with a list that tells for every
    /// operator whether the calling thread computes it alone. Time is measured between operators in
    /// measured runs of a trial, and never in other runs.
    pub(super) fn run(
        &mut self,
        mut run: impl FnMut(&[bool], Range<usize>) -> Result<()>,
        now: impl Fn() -> Instant,
    ) -> Result<()> {
        if self.runs < TRIAL && self.runs % TURN >= UNMEASURED {
            self.measure(run, now)?;
        } else {
            run(&self.alone, 0..self.alone.len())?;
        }
        self.proceed();
        Ok(())
    }

    fn measure(
        &mut self,
        mut run: impl FnMut(&[bool], Range<usize>) -> Result<()>,
        now: impl Fn() -> Instant,
    ) -> Result<()> {
        let least = &mut self.least[self.threads() as usize];
        let start = now();
        let mut before = start;
        for (at, time) in least.operators.iter_mut().enumerate() {
            run(&self.alone, at..at + 1)?;
            let after = now();
            *time = (after - before).min(*time);
            before = after;
        }
        least.run = (before - start).min(least.run);
        Ok(())
    }

    fn proceed(&mut self) {
        self.runs += 1;
        let [all, one, _] = &self.least;
        if self.runs == TRIAL - TURN {
            let times = one.operators.iter().zip(&all.operators);
            for (alone, (one, all)) in self.alone.iter_mut().zip(times) {
                *alone = one <= all;
            }
        } else if self.runs == TRIAL && self.fastest() != Threads::Each {
            self.alone.fill(false);
        } else if self.runs == PERIOD {
            self.runs = 0;
            self.alone.fill(false);
            for least in &mut self.least {
                least.run = Duration::MAX;
                least.operators.fill(Duration::MAX);
            }
        }
    }

    /// The fastest choice of a trial.
    fn fastest(&self) -> Threads {
        let [all, one, each] = self.least.each_ref().map(|least| least.run.as_secs_f64());
        match each <= all {
            _ if all.min(each) > one * GAIN => Threads::One,
            true => Threads::Each,
            false => Threads::All,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::cell::Cell;

    use super::*;

    /// A processor on which operators take these times in microseconds, with all threads and with
    /// one.
    struct Processor {
        operators: Vec<[u64; 2]>,
        /// Additional time of an operator that is computed by other threads than the previous one.
        change: u64,
        time: Cell<Instant>,
        /// Runs that another process delays.
        delayed: Range<usize>,
    }

    impl Processor {
        fn new(operators: &[[u64; 2]]) -> Self {
            let time = Cell::new(Instant::now());
            Self { operators: operators.to_vec(), change: 0, time, delayed: 0..0 }
        }

        /// Threads that computed a run, and the number of calls.
        fn run(&self, trial: &mut Trial) -> (Threads, Vec<bool>, usize) {
            let threads = trial.threads();
            let (mut by, mut calls) = (Vec::new(), 0);
            let delay = if self.delayed.contains(&trial.runs) { 900 } else { 0 };
            let run = |alone: &[bool], range: Range<usize>| {
                calls += 1;
                for at in range {
                    assert_eq!(at, by.len());
                    let is_alone = threads == Threads::One || alone[at];
                    let change = by.last().is_some_and(|&last| last != is_alone);
                    let micros = self.operators[at][usize::from(is_alone)] + delay;
                    let micros = micros + if change { self.change } else { 0 };
                    self.time.set(self.time.get() + Duration::from_micros(micros));
                    by.push(is_alone);
                }
                Ok(())
            };
            trial.run(run, || self.time.get()).unwrap();
            assert_eq!(by.len(), self.operators.len());
            (threads, by, calls)
        }

        /// Threads that compute after a trial.
        fn decision(&self) -> (Threads, Vec<bool>) {
            let mut trial = Trial::new(self.operators.len());
            self.try_threads(&mut trial);
            let (threads, by, calls) = self.run(&mut trial);
            assert_eq!(calls, 1);
            (threads, by)
        }

        fn try_threads(&self, trial: &mut Trial) {
            for turn in TURNS {
                for at in 0..TURN {
                    let (threads, by, calls) = self.run(trial);
                    assert_eq!(threads, turn);
                    assert_eq!(calls, if at < UNMEASURED { 1 } else { self.operators.len() });
                    assert!(turn != Threads::All || !by.contains(&true));
                }
            }
        }
    }

    #[test]
    fn the_least_times_of_runs_decide() {
        let threads = |operator| Processor::new(&[operator]).decision().0;
        assert_eq!(threads([60, 100]), Threads::Each);
        assert_eq!(threads([140, 100]), Threads::One);
        // Equal times are not a gain.
        assert_eq!(threads([100, 100]), Threads::One);
        assert_eq!(threads([98, 100]), Threads::One);
        // Delays by other processes do not change the result.
        for delayed in [0..5, 5..9, 10..19] {
            let processor = Processor { delayed, ..Processor::new(&[[60, 100], [140, 100]]) };
            assert_eq!(processor.decision(), (Threads::Each, vec![false, true]));
        }
    }

    #[test]
    fn each_operator_uses_the_faster_threads() {
        let mut processor = Processor::new(&[[60, 100], [9, 3], [60, 100], [5, 5]]);
        let by = vec![false, true, false, true];
        assert_eq!(processor.decision(), (Threads::Each, by.clone()));
        // Unless changes of threads cost more than they save.
        processor.change = 1;
        assert_eq!(processor.decision(), (Threads::Each, by));
        processor.change = 3;
        assert_eq!(processor.decision(), (Threads::All, vec![false; 4]));
    }

    #[test]
    fn trials_are_repeated() {
        let mut processor = Processor::new(&[[60, 100], [9, 3]]);
        let mut trial = Trial::new(2);
        for expected in [[false, true], [false, false]] {
            processor.try_threads(&mut trial);
            for _ in TRIAL..PERIOD {
                let (_, by, calls) = processor.run(&mut trial);
                assert_eq!((by, calls), (expected.to_vec(), 1));
            }
            processor.operators = vec![[60, 100], [3, 9]];
        }
    }

    #[test]
    fn failed_runs_are_not_counted() {
        let mut trial = Trial::new(1);
        let fails = |_: &[bool], _: Range<usize>| Err(crate::Error::state("fails"));
        for _ in 0..2 * TURN {
            trial.run(fails, Instant::now).unwrap_err();
        }
        assert_eq!(trial.threads(), Threads::All);
    }
}
