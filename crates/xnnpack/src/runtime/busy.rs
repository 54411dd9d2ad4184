//! Fewer threads while other programs use the processors.

use std::time::Duration;

/// A run is slow if it takes more than this multiple of the least time.
const SLOW: u32 = 2;
/// Number of successive slow runs after which fewer threads are tried.
const SLOW_RUNS: usize = 2;
/// Number of runs of which the total time is compared.
const TURN: usize = 8;
/// Number of runs with fewer threads until the chosen threads are used again.
const HOLD: usize = 100;
/// Number of runs without a comparison after one in which fewer threads were not faster. It doubles
/// with each such comparison.
const PAUSE: usize = 100;
/// Maximal total time with fewer threads, relative to more threads, for which fewer are used. On a
/// busy machine, equal runs differ by much, and more threads have a larger share of the processors.
const GAIN: f64 = 0.8;

/// Compares fewer threads when runs become slow.
///
/// A level is the number of steps from the chosen threads to fewer threads. Total times decide, not
/// least times: on a busy machine, a run that has a processor for itself is an exception.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    /// Highest level: with it, one thread computes.
    levels: usize,
    /// Least time of a run with the chosen threads.
    least: Duration,
    state: State,
    pause: usize,
}

#[derive(Clone, Debug)]
enum State {
    /// The chosen threads compute. `slow` has the times of successive slow runs, and no comparison
    /// begins during the next `pause` runs.
    Chosen { slow: Sum, pause: usize },
    /// Runs of a level are measured. `totals` has the times of level 1, level 0, and of further
    /// levels. `slow` has the runs because of which levels are compared.
    Compare { slow: Sum, totals: Vec<Sum>, sum: Sum },
    /// A level is used for a number of runs.
    Hold { level: usize, runs: usize },
}

const CHOSEN: State = State::Chosen { slow: Sum::ZERO, pause: 0 };

/// Number of runs and their total time.
#[derive(Clone, Copy, Debug)]
struct Sum {
    runs: usize,
    time: Duration,
}

impl Sum {
    const ZERO: Self = Self { runs: 0, time: Duration::ZERO };

    fn plus(self, run: Duration) -> Self {
        Self { runs: self.runs + 1, time: self.time + run }
    }

    /// Whether these runs took clearly less time than as many `others`.
    fn gains_on(self, others: Self) -> bool {
        self.time.as_secs_f64() <= others.time.as_secs_f64() * GAIN
    }
}

impl Busy {
    /// Watches runs, of which one took `least`, with threads that can be reduced `levels` times.
    pub(super) fn new(levels: usize, least: Duration) -> Self {
        Self { levels, least, state: CHOSEN, pause: PAUSE }
    }

    /// Number of steps to fewer threads in the next run.
    pub(super) fn level(&self) -> usize {
        match &self.state {
            State::Chosen { .. } => 0,
            State::Compare { totals, .. } => match totals.len() {
                0 => 1,
                1 => 0,
                further => further,
            },
            State::Hold { level, .. } => *level,
        }
    }

    /// Records the time of a run with [`level`](Self::level).
    pub(super) fn record(&mut self, run: Duration) {
        if self.levels == 0 {
            return;
        }
        if self.level() == 0 {
            self.least = run.min(self.least);
        }
        let state = std::mem::replace(&mut self.state, CHOSEN);
        self.state = match state {
            State::Chosen { pause: pause @ 1.., .. } => {
                State::Chosen { slow: Sum::ZERO, pause: pause - 1 }
            }
            State::Chosen { slow, pause } => {
                let slow = if run > self.least * SLOW { slow.plus(run) } else { Sum::ZERO };
                if slow.runs < SLOW_RUNS {
                    State::Chosen { slow, pause }
                } else {
                    State::Compare { slow, totals: Vec::new(), sum: Sum::ZERO }
                }
            }
            State::Compare { slow, mut totals, sum } => {
                let sum = sum.plus(run);
                let first = totals.is_empty() && sum.runs == slow.runs;
                if first && !sum.gains_on(slow) {
                    self.stay()
                } else if sum.runs < TURN {
                    State::Compare { slow, totals, sum }
                } else {
                    totals.push(sum);
                    self.compare(slow, totals)
                }
            }
            State::Hold { runs: 0, .. } => CHOSEN,
            State::Hold { level, runs } => State::Hold { level, runs: runs - 1 },
        };
    }

    /// Decides after the runs of a level.
    fn compare(&mut self, slow: Sum, totals: Vec<Sum>) -> State {
        let gains = match totals.as_slice() {
            [fewer, chosen] => fewer.gains_on(*chosen),
            [fewer, _, further] => further.gains_on(*fewer),
            [.., last, further] => further.gains_on(*last),
            _ => return State::Compare { slow, totals, sum: Sum::ZERO },
        };
        let level = totals.len() - 1;
        match gains {
            true if level < self.levels => State::Compare { slow, totals, sum: Sum::ZERO },
            true => State::Hold { level, runs: HOLD - 1 },
            false if level > 1 => State::Hold { level: level - 1, runs: HOLD - 1 },
            false => self.stay(),
        }
    }

    /// Keeps the chosen threads, since fewer are not faster.
    fn stay(&mut self) -> State {
        let pause = self.pause;
        self.pause = pause.saturating_mul(2);
        State::Chosen { slow: Sum::ZERO, pause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time of a run in microseconds at each level.
    const QUIET: [u64; 4] = [100, 180, 350, 700];

    fn run(busy: &mut Busy, times: [u64; 4], runs: usize) -> Vec<usize> {
        let run = |_| {
            let level = busy.level();
            busy.record(Duration::from_micros(times[level]));
            level
        };
        (0..runs).map(run).collect()
    }

    fn watch() -> Busy {
        Busy::new(3, Duration::from_micros(100))
    }

    fn levels(counts: &[(usize, usize)]) -> Vec<usize> {
        counts.iter().flat_map(|&(level, count)| vec![level; count]).collect()
    }

    #[test]
    fn single_slow_runs_change_nothing() {
        let mut busy = watch();
        for _ in 0..100 {
            assert_eq!(run(&mut busy, [900; 4], SLOW_RUNS - 1), vec![0; SLOW_RUNS - 1]);
            assert_eq!(run(&mut busy, QUIET, 1), [0]);
        }
        // Twice the time is not slow yet.
        assert_eq!(run(&mut busy, [200; 4], 100), vec![0; 100]);
    }

    #[test]
    fn fewer_threads_compute_while_they_are_faster() {
        let mut busy = watch();
        let expected = levels(&[(0, SLOW_RUNS), (1, TURN), (0, TURN), (2, TURN), (1, HOLD)]);
        assert_eq!(run(&mut busy, [900, 300, 250, 700], expected.len()), expected);
        // The machine is idle again, and all threads come back.
        assert_eq!(run(&mut busy, QUIET, 50), vec![0; 50]);
    }

    #[test]
    fn the_level_with_the_least_time_is_found() {
        let compared = [(0, SLOW_RUNS), (1, TURN), (0, TURN), (2, TURN), (3, TURN)];
        for (third, found) in [(100, 3), (300, 2)] {
            let expected = levels(&[&compared[..], &[(found, HOLD)]].concat());
            assert_eq!(run(&mut watch(), [900, 300, 200, third], expected.len()), expected);
        }
    }

    #[test]
    fn threads_remain_where_fewer_are_not_faster() {
        let mut busy = watch();
        // Two runs show it.
        let slow = [900, 750, 900, 900];
        for pause in [PAUSE, 2 * PAUSE, 4 * PAUSE] {
            let expected = levels(&[(0, SLOW_RUNS), (1, SLOW_RUNS), (0, pause)]);
            assert_eq!(run(&mut busy, slow, expected.len()), expected);
        }
        // The chosen threads were slow by chance.
        let mut busy = watch();
        assert_eq!(run(&mut busy, [900; 4], SLOW_RUNS), vec![0; SLOW_RUNS]);
        let expected = levels(&[(1, TURN), (0, TURN), (0, PAUSE)]);
        assert_eq!(run(&mut busy, QUIET, expected.len()), expected);
    }

    #[test]
    fn one_thread_cannot_be_reduced() {
        let mut busy = Busy::new(0, Duration::from_micros(1));
        assert_eq!(run(&mut busy, [900; 4], 50), vec![0; 50]);
    }
}
