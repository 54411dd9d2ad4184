//! Trials of threads: the number that is fastest, for a whole run and for each operator.

use std::iter;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::status::Result;

/// Number of runs of a turn that are not measured, since caches and threads are in another state,
/// and of measured ones. Turns are short and alternate, because a processor changes its clock and
/// other processes come and go.
const UNMEASURED: usize = 1;
const MEASURED: usize = 2;
const TURN: usize = UNMEASURED + MEASURED;
/// Number of turns at the end of a trial that compare [`Threads::Each`] with all threads.
const COMPARISON: usize = 3;
/// Number of turns after these that confirm the choice, in turns with the fewest threads. The
/// runtimes of a model are tried at the same time, so that each finds threads awake that the others
/// use, but may have to wake them once the others have chosen one thread.
const CONFIRMATION: usize = 4;
/// Number of runs from the beginning of a trial to the next one: other processes may have disturbed
/// the last one.
const PERIOD: usize = 1000;
/// [`PERIOD`] after a trial that chose the fewest threads, which another process causes if it takes a
/// processor for some milliseconds. It doubles with each such trial in a row, up to [`PERIOD`].
const RETRY: usize = 100;
/// Maximal time with more threads, relative to fewer, for which they are used: threads take
/// processor time while they wait for each other.
const GAIN: f64 = 0.85;
/// Limit of an operator that uses all threads of its runtime.
const UNLIMITED: u32 = u32::MAX;

/// Threads that compute a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// The number at this position of the list, for all operators.
    All(usize),
    /// For each operator the fastest number.
    Each,
}

/// Measures the first runs of a runtime, and of every thousand, to choose threads. After the choice
/// of the fewest threads the next trial begins sooner.
///
/// Threads synchronize after every operator, and read data that others have written. This takes
/// from half a microsecond to several, depending on the processors and their connection.
#[derive(Debug)]
pub(super) struct Trial {
    /// Numbers of threads in ascending order: 1, 2, 4, ..., and all threads.
    counts: Vec<u32>,
    /// Position of the least number that is tried.
    fewest: usize,
    /// Turns of a trial before its choice.
    turns: Vec<Threads>,
    runs: usize,
    /// Number of runs from the beginning of this trial to the next one.
    period: usize,
    /// `period` of the next trial that chooses the fewest threads.
    retry: usize,
    /// Times for each of `counts`, and for [`Threads::Each`].
    times: Vec<Times>,
    /// Maximal number of threads for each operator with [`Threads::Each`].
    each: Vec<u32>,
    unlimited: Vec<u32>,
    chosen: Threads,
}

/// Times of the operators in each measured run.
#[derive(Clone, Debug, Default)]
struct Times(Vec<Vec<Duration>>);

impl Times {
    fn run(&self) -> Duration {
        typical(self.0.iter().map(|operators| operators.iter().sum()))
    }

    fn operator(&self, at: usize) -> Duration {
        typical(self.0.iter().filter_map(|operators| operators.get(at).copied()))
    }
}

/// The lower median, which is that of a quiet machine if something else runs during half of the
/// turns; the maximum of none. The least time would favour more threads, since their runs differ
/// more from each other.
fn typical(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(Duration::MAX)
}

impl Trial {
    /// Trial of a runtime with `operators` operators that can run one by one. The numbers from
    /// `fewest` to `most` are tried, beginning with the least if `fewest_first`.
    pub(super) fn new(operators: usize, fewest: u32, most: u32, fewest_first: bool) -> Self {
        let powers = iter::successors(Some(1_u32), |count| count.checked_mul(2));
        let counts: Vec<u32> = powers.take_while(|&count| count < most).chain([most]).collect();
        let all = Threads::All(counts.len() - 1);
        let fewest = counts.partition_point(|&count| count < fewest);
        let mut tried: Vec<Threads> = (fewest..counts.len()).rev().map(Threads::All).collect();
        if fewest_first {
            tried.reverse();
        }
        let turns = match tried.len() {
            // Nothing to choose from.
            0 | 1 => Vec::new(),
            _ => [&tried, &tried, &[Threads::Each, all, Threads::Each][..]].concat(),
        };
        Self {
            times: vec![Times::default(); counts.len() + 1],
            each: vec![UNLIMITED; operators],
            unlimited: vec![UNLIMITED; operators],
            chosen: all,
            runs: 0,
            period: PERIOD,
            retry: RETRY,
            fewest,
            turns,
            counts,
        }
    }

    /// Number of threads of the next run.
    pub(super) fn threads(&self) -> u32 {
        let at = match self.next() {
            Threads::All(at) => at,
            Threads::Each => self.counts.len() - 1,
        };
        self.counts[at]
    }

    fn next(&self) -> Threads {
        let turn = self.runs / TURN;
        match self.turns.get(turn) {
            Some(&threads) => threads,
            // Every second turn of the confirmation.
            None if self.runs < self.end() && (turn - self.turns.len()) % 2 == 1 => {
                Threads::All(self.fewest)
            }
            None => self.chosen,
        }
    }

    /// Runs all operators by calling `run` for ranges of them, with a list of the maximal number of
    /// threads for each operator. Time is measured between operators in measured runs of a trial,
    /// and never in other runs.
    pub(super) fn run(
        &mut self,
        mut run: impl FnMut(&[u32], Range<usize>) -> Result<()>,
        now: impl Fn() -> Instant,
    ) -> Result<()> {
        let threads = self.next();
        let limits = match threads {
            Threads::All(_) => &self.unlimited,
            Threads::Each => &self.each,
        };
        let at = self.position(threads);
        if self.runs >= self.end() || self.runs % TURN < UNMEASURED {
            run(limits, 0..limits.len())?;
        } else {
            let mut times = Vec::with_capacity(limits.len());
            let mut before = now();
            for at in 0..limits.len() {
                run(limits, at..at + 1)?;
                let after = now();
                times.push(after - before);
                before = after;
            }
            self.times[at].0.push(times);
        }
        self.proceed();
        Ok(())
    }

    /// Position of a choice in `times`.
    fn position(&self, threads: Threads) -> usize {
        match threads {
            Threads::All(at) => at,
            Threads::Each => self.counts.len(),
        }
    }

    /// Number of runs of a trial.
    fn end(&self) -> usize {
        if self.turns.is_empty() { 0 } else { (self.turns.len() + CONFIRMATION) * TURN }
    }

    fn proceed(&mut self) {
        self.runs += 1;
        let (choice, end) = (self.turns.len() * TURN, self.end());
        if end == 0 {
            return;
        }
        if self.runs == choice - COMPARISON * TURN {
            for (at, limit) in self.each.iter_mut().enumerate() {
                let times = self.counts.iter().zip(&self.times);
                // The first of equal times, which has the fewest threads.
                let fastest = times.min_by_key(|(_, times)| times.operator(at));
                *limit = fastest.map_or(UNLIMITED, |(&count, _)| count);
            }
        } else if self.runs == choice {
            self.choose();
        } else if self.runs == end {
            self.confirm();
            self.schedule();
        } else if self.runs == self.period.max(2 * end) {
            self.runs = 0;
        }
    }

    /// Takes the fastest choice of a trial.
    fn choose(&mut self) {
        let seconds = |at: usize| self.times[at].run().as_secs_f64();
        let mut fastest = 0;
        for at in 1..self.counts.len() {
            if seconds(at) <= seconds(fastest) * GAIN {
                fastest = at;
            }
        }
        let (one, each) = (seconds(0), self.counts.len());
        let is_faster = seconds(each) <= seconds(fastest) && seconds(each) <= one * GAIN;
        self.chosen = if is_faster { Threads::Each } else { Threads::All(fastest) };
        self.times.fill(Times::default());
    }

    /// Takes the fewest threads if the choice does not save as much again.
    fn confirm(&mut self) {
        let seconds = |at: usize| self.times[at].run().as_secs_f64();
        if seconds(self.position(self.chosen)) > seconds(self.fewest) * GAIN {
            self.chosen = Threads::All(self.fewest);
        }
        self.times.fill(Times::default());
    }

    /// Decides when the next trial begins.
    fn schedule(&mut self) {
        if self.chosen == Threads::All(self.fewest) {
            self.period = self.retry;
            self.retry = (2 * self.retry).min(PERIOD);
        } else {
            self.period = PERIOD;
            self.retry = RETRY;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::cell::Cell;

    use super::*;

    /// A processor on which operators take these times in microseconds with each number of threads.
    struct Processor {
        operators: Vec<Vec<u64>>,
        fewest: u32,
        fewest_first: bool,
        /// Additional time of an operator that is computed by other threads than the previous one.
        change: u64,
        time: Cell<Instant>,
        /// Runs that another process delays.
        delayed: Range<usize>,
    }

    /// Threads of a run, the threads of each operator, and the number of calls.
    type Run = (Threads, Vec<u32>, usize);

    impl Processor {
        fn new<const COUNTS: usize>(operators: &[[u64; COUNTS]]) -> Self {
            let operators = operators.iter().map(|times| times.to_vec()).collect();
            let time = Cell::new(Instant::now());
            Self { operators, fewest: 1, fewest_first: false, change: 0, time, delayed: 0..0 }
        }

        fn trial(&self) -> Trial {
            let counts = self.operators.first().map_or(1, Vec::len);
            Trial::new(self.operators.len(), self.fewest, 1 << (counts - 1), self.fewest_first)
        }

        fn run(&self, trial: &mut Trial) -> Run {
            let (next, most) = (trial.next(), trial.threads());
            let (mut by, mut calls) = (Vec::new(), 0);
            let delay = if self.delayed.contains(&trial.runs) { 900 } else { 0 };
            let run = |limits: &[u32], range: Range<usize>| {
                calls += 1;
                for at in range {
                    assert_eq!(at, by.len());
                    let threads = limits[at].min(most);
                    let change = by.last().is_some_and(|&last| last != threads);
                    let micros = self.operators[at][threads.ilog2() as usize] + delay;
                    let micros = micros + if change { self.change } else { 0 };
                    self.time.set(self.time.get() + Duration::from_micros(micros));
                    by.push(threads);
                }
                Ok(())
            };
            trial.run(run, || self.time.get()).unwrap();
            assert_eq!(by.len(), self.operators.len());
            (next, by, calls)
        }

        /// Threads that compute after a trial.
        fn decision(&self) -> (Threads, Vec<u32>) {
            let mut trial = self.trial();
            self.try_threads(&mut trial);
            self.confirm(&mut trial);
            let (threads, by, calls) = self.run(&mut trial);
            assert_eq!(calls, 1);
            (threads, by)
        }

        fn expected_calls(&self, run_of_turn: usize) -> usize {
            if run_of_turn < UNMEASURED { 1 } else { self.operators.len() }
        }

        fn try_threads(&self, trial: &mut Trial) {
            for turn in trial.turns.clone() {
                for at in 0..TURN {
                    let (threads, by, calls) = self.run(trial);
                    assert_eq!(threads, turn);
                    assert_eq!(calls, self.expected_calls(at));
                    if let Threads::All(at) = turn {
                        assert_eq!(by, vec![1 << at; by.len()]);
                    }
                }
            }
        }

        fn confirm(&self, trial: &mut Trial) {
            let turns = [trial.chosen, Threads::All(trial.fewest)];
            for at in 0..CONFIRMATION * TURN {
                let (threads, _, calls) = self.run(trial);
                let expected = (turns[at / TURN % 2], self.expected_calls(at % TURN));
                assert_eq!((threads, calls), expected);
            }
        }
    }

    const ONE: Threads = Threads::All(0);

    #[test]
    fn numbers_of_threads_are_powers_of_two_and_the_greatest() {
        let counts = |most| Trial::new(1, 1, most, false).counts;
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(6), [1, 2, 4, 6]);
        assert_eq!(counts(16), [1, 2, 4, 8, 16]);
        let turns = |fewest, most| Trial::new(1, fewest, most, false).turns;
        let (all, each) = (Threads::All, Threads::Each);
        assert_eq!(turns(1, 2), [all(1), ONE, all(1), ONE, each, all(1), each]);
        let tried = [all(3), all(2), all(1)];
        assert_eq!(turns(2, 8), [&tried[..], &tried, &[each, all(3), each]].concat());
        assert_eq!(turns(2, 2), []);
        assert_eq!(turns(1, 1), []);
        let turns = |fewest, most| Trial::new(1, fewest, most, true).turns;
        assert_eq!(turns(1, 2), [ONE, all(1), ONE, all(1), each, all(1), each]);
        let tried = [all(1), all(2), all(3)];
        assert_eq!(turns(2, 8), [&tried[..], &tried, &[each, all(3), each]].concat());
        assert_eq!(turns(2, 2), []);
    }

    #[test]
    fn the_typical_times_of_runs_decide() {
        // Times with one thread and with two.
        let threads = |operator| Processor::new(&[operator]).decision().0;
        assert_eq!(threads([100, 60]), Threads::Each);
        assert_eq!(threads([100, 140]), ONE);
        // Equal times are not a gain.
        assert_eq!(threads([100, 100]), ONE);
        assert_eq!(threads([100, 86]), ONE);
        assert_eq!(threads([100, 84]), Threads::Each);
        // Neither delays by other processes nor the order change the result.
        for delayed in [0..5, 5..9, 10..19, 0..6, 3..9, 6..12, 12..18, 15..21] {
            for fewest_first in [false, true] {
                let delayed = delayed.clone();
                let processor = Processor::new(&[[100, 60], [100, 140]]);
                let processor = Processor { delayed, fewest_first, ..processor };
                assert_eq!(processor.decision(), (Threads::Each, vec![2, 1]));
            }
        }
    }

    #[test]
    fn the_fastest_of_several_numbers_is_chosen() {
        let mut processor = Processor::new(&[[100, 60, 50, 70], [100, 60, 55, 80]]);
        assert_eq!(processor.decision(), (Threads::Each, vec![4, 4]));
        processor.change = 1000;
        processor.operators = vec![vec![100, 70, 60, 90], vec![100, 70, 50, 120]];
        assert_eq!(processor.decision(), (Threads::Each, vec![4, 4]));
        // A small gain is not worth more threads.
        processor.operators = vec![vec![100, 60, 59, 59], vec![100, 60, 59, 59]];
        assert_eq!(processor.decision().1, [4, 4]);
        processor.operators = vec![vec![100, 70, 60, 90], vec![100, 60, 69, 90]];
        assert_eq!(processor.decision(), (Threads::All(1), vec![2, 2]));
        // One thread is not tried where several are surely faster.
        let processor = Processor { fewest: 2, ..Processor::new(&[[1, 60, 50]]) };
        assert_eq!(processor.decision(), (Threads::Each, vec![4]));
    }

    #[test]
    fn each_operator_uses_the_fastest_threads() {
        let mut processor = Processor::new(&[[100, 60], [3, 9], [100, 60], [5, 5]]);
        let by = vec![2, 1, 2, 1];
        assert_eq!(processor.decision(), (Threads::Each, by.clone()));
        // Unless changes of threads cost more than they save.
        processor.change = 1;
        assert_eq!(processor.decision(), (Threads::Each, by));
        processor.change = 3;
        assert_eq!(processor.decision(), (Threads::All(1), vec![2; 4]));
    }

    #[test]
    fn a_choice_that_is_not_faster_afterwards_is_revised() {
        // Times after the turns, which may be longer as threads have to be woken then.
        let decision = |fewest, before: [u64; 3], after: [u64; 3]| {
            let mut processor = Processor { fewest, ..Processor::new(&[before]) };
            let mut trial = processor.trial();
            processor.try_threads(&mut trial);
            processor.operators = vec![after.to_vec()];
            processor.confirm(&mut trial);
            processor.run(&mut trial).0
        };
        assert_eq!(decision(1, [100, 60, 40], [100, 120, 86]), ONE);
        assert_eq!(decision(1, [100, 60, 40], [100, 120, 84]), Threads::Each);
        assert_eq!(decision(1, [100, 90, 90], [200, 120, 100]), ONE);
        assert_eq!(decision(2, [1, 60, 40], [1, 60, 52]), Threads::All(1));
        assert_eq!(decision(2, [1, 60, 40], [1, 60, 50]), Threads::Each);
        assert_eq!(decision(2, [1, 60, 55], [1, 90, 90]), Threads::All(1));
        // The processor was slow before.
        assert_eq!(decision(1, [300, 240, 240], [180, 220, 220]), ONE);
    }

    #[test]
    fn trials_are_repeated() {
        let mut processor = Processor::new(&[[100, 60], [3, 9]]);
        let mut trial = processor.trial();
        for expected in [[2, 1], [2, 2]] {
            processor.try_threads(&mut trial);
            processor.confirm(&mut trial);
            for _ in trial.end()..PERIOD {
                let (_, by, calls) = processor.run(&mut trial);
                assert_eq!((by, calls), (expected.to_vec(), 1));
            }
            processor.operators = vec![vec![100, 60], vec![9, 3]];
        }
    }

    #[test]
    fn the_fewest_threads_are_tried_again_sooner() {
        let mut processor = Processor::new(&[[100, 140]]);
        let mut trial = processor.trial();
        let mut next = |processor: &Processor, period: usize, expected: Threads| {
            processor.try_threads(&mut trial);
            processor.confirm(&mut trial);
            for _ in trial.end()..period {
                assert_eq!(processor.run(&mut trial).0, expected);
            }
        };
        for period in [100, 200, 400, 800, 1000, 1000] {
            next(&processor, period, ONE);
        }
        processor.operators = vec![vec![100, 60]];
        next(&processor, 1000, Threads::Each);
        processor.operators = vec![vec![100, 140]];
        next(&processor, 100, ONE);
        next(&processor, 200, ONE);
    }

    #[test]
    fn runtimes_without_a_choice_keep_all_threads() {
        // A pool may have fewer threads than a graph with much work tries at least.
        for (fewest, most) in [(1, 1), (2, 1), (2, 2), (3, 1), (8, 6)] {
            let mut trial = Trial::new(1, fewest, most, false);
            for _ in 0..(CONFIRMATION + 1) * TURN {
                assert_eq!(trial.threads(), most);
                trial.run(|_, _| Ok(()), Instant::now).unwrap();
            }
        }
    }

    #[test]
    fn failed_runs_are_not_counted() {
        let mut trial = Trial::new(1, 1, 2, false);
        let fails = |_: &[u32], _: Range<usize>| Err(crate::Error::state("fails"));
        for _ in 0..2 * TURN {
            trial.run(fails, Instant::now).unwrap_err();
        }
        assert_eq!(trial.next(), Threads::All(1));
    }
}
