//! Whether several threads are faster than one: at a whole run, and at each operator.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::status::Result;

/// Runs of a turn that are not measured, and those that are: the first find another state of caches and threads.
const UNMEASURED: usize = 2;
const MEASURED: usize = 3;
const TURN: usize = UNMEASURED + MEASURED;
/// All threads begin, as the first runs of a session are slower.
const TURNS: [Threads; 4] = [Threads::All, Threads::One, Threads::All, Threads::Each];
/// Runs of a trial, and runs after which another one begins: others may have had the processors during the last one.
const TRIAL: usize = TURNS.len() * TURN;
const PERIOD: usize = 1000;
/// What threads must take of the time of one at most, to be worth the others' processors.
const GAIN: f64 = 0.97;

/// Who computes a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    All,
    /// The calling one.
    One,
    /// Of each operator those who are faster at it: all, or the calling one.
    Each,
}

/// The first runs of a runtime, and of every thousand, which find out whether threads pay.
///
/// They meet after every operator, and read what others have written: how long that takes is a matter of
/// processors and of how they are connected, from half a microsecond to several.
#[derive(Debug)]
pub(super) struct Trial {
    runs: usize,
    /// By who computed, in the order of [`Threads`].
    least: [Times; 3],
    /// Of each operator, whether the calling thread computes it. All are `false` but for [`Threads::Each`].
    alone: Vec<bool>,
}

/// Of a run, and of its operators.
#[derive(Clone, Debug)]
struct Times {
    run: Duration,
    operators: Vec<Duration>,
}

impl Trial {
    /// Of a runtime of so many operators that can be run one by one.
    pub(super) fn new(operators: usize) -> Self {
        let never = Times { run: Duration::MAX, operators: vec![Duration::MAX; operators] };
        let least = [never.clone(), never.clone(), never];
        Self { runs: 0, least, alone: vec![false; operators] }
    }

    /// Who computes the next run.
    pub(super) fn threads(&self) -> Threads {
        TURNS.get(self.runs / TURN).copied().unwrap_or_else(|| self.fastest())
    }

    /// Runs all operators by calling `run` for some after the other, which is told for each of all operators whether
    /// the calling thread computes it. The time is read between operators in the runs of a trial, and never in others.
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

    /// What a trial has shown.
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

    /// A processor on which operators take so many microseconds, with all threads and alone.
    struct Processor {
        operators: Vec<[u64; 2]>,
        /// What an operator takes longer that is computed by others than the one before it.
        change: u64,
        time: Cell<Instant>,
        /// Runs in which something else delays it.
        delayed: Range<usize>,
    }

    impl Processor {
        fn new(operators: &[[u64; 2]]) -> Self {
            let time = Cell::new(Instant::now());
            Self { operators: operators.to_vec(), change: 0, time, delayed: 0..0 }
        }

        /// Who computed a run, and in how many calls.
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

        /// Who computes after a trial.
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
        // A tie is no gain.
        assert_eq!(threads([100, 100]), Threads::One);
        assert_eq!(threads([98, 100]), Threads::One);
        // What something else delays changes nothing.
        for delayed in [0..5, 5..9, 10..19] {
            let processor = Processor { delayed, ..Processor::new(&[[60, 100], [140, 100]]) };
            assert_eq!(processor.decision(), (Threads::Each, vec![false, true]));
        }
    }

    #[test]
    fn each_operator_has_the_threads_that_are_faster_at_it() {
        let mut processor = Processor::new(&[[60, 100], [9, 3], [60, 100], [5, 5]]);
        let by = vec![false, true, false, true];
        assert_eq!(processor.decision(), (Threads::Each, by.clone()));
        // Unless that takes more than it spares.
        processor.change = 1;
        assert_eq!(processor.decision(), (Threads::Each, by));
        processor.change = 3;
        assert_eq!(processor.decision(), (Threads::All, vec![false; 4]));
    }

    #[test]
    fn what_was_found_out_is_tried_again() {
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
    fn a_run_that_fails_counts_for_nothing() {
        let mut trial = Trial::new(1);
        let fails = |_: &[bool], _: Range<usize>| Err(crate::Error::state("fails"));
        for _ in 0..2 * TURN {
            trial.run(fails, Instant::now).unwrap_err();
        }
        assert_eq!(trial.threads(), Threads::All);
    }
}
