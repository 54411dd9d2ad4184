//! Fewer threads while other programs use the processors.

use std::time::Duration;

/// A run is slow if it takes more than this multiple of the least time.
const SLOW: u32 = 2;
/// Number of successive slow runs after which fewer threads are tried.
const SLOW_RUNS: usize = 2;
/// Number of runs of which the total time is compared.
const TURN: usize = 8;
/// Number of runs with fewer threads until the chosen threads are used again.
const HOLD: usize = 200;
/// Number of runs without a comparison after one in which fewer threads were not faster. It doubles
/// with each such comparison.
const PAUSE: usize = 100;
/// Maximal total time with fewer threads, relative to more threads, for which fewer are used.
const GAIN: f64 = 0.95;

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
    /// The chosen threads compute. `slow` is the number of successive slow runs, and no comparison
    /// begins during the next `pause` runs.
    Chosen { slow: usize, pause: usize },
    /// Runs of a level are measured. `totals` has the times of level 1, level 0, and of further
    /// levels.
    Compare { totals: Vec<Duration>, runs: usize, time: Duration },
    /// A level is used for a number of runs.
    Hold { level: usize, runs: usize },
}

const CHOSEN: State = State::Chosen { slow: 0, pause: 0 };

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
            State::Chosen { pause: pause @ 1.., .. } => State::Chosen { slow: 0, pause: pause - 1 },
            State::Chosen { slow, pause } => {
                let slow = if run > self.least * SLOW { slow + 1 } else { 0 };
                if slow < SLOW_RUNS {
                    State::Chosen { slow, pause }
                } else {
                    State::Compare { totals: Vec::new(), runs: 0, time: Duration::ZERO }
                }
            }
            State::Compare { mut totals, runs, time } => {
                let (runs, time) = (runs + 1, time + run);
                if runs < TURN {
                    State::Compare { totals, runs, time }
                } else {
                    totals.push(time);
                    self.compare(totals)
                }
            }
            State::Hold { runs: 0, .. } => CHOSEN,
            State::Hold { level, runs } => State::Hold { level, runs: runs - 1 },
        };
    }

    /// Decides after the runs of a level.
    fn compare(&mut self, totals: Vec<Duration>) -> State {
        let gains = match totals.as_slice() {
            [fewer, chosen] => fewer.as_secs_f64() <= chosen.as_secs_f64() * GAIN,
            [fewer, _, further] => further < fewer,
            [.., last, further] => further < last,
            _ => return State::Compare { totals, runs: 0, time: Duration::ZERO },
        };
        let level = totals.len() - 1;
        match gains {
            true if level < self.levels => State::Compare { totals, runs: 0, time: Duration::ZERO },
            true => State::Hold { level, runs: HOLD - 1 },
            false if level > 1 => State::Hold { level: level - 1, runs: HOLD - 1 },
            false => {
                let pause = self.pause;
                self.pause *= 2;
                State::Chosen { slow: 0, pause }
            }
        }
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
        assert_eq!(run(&mut busy, [900, 300, 350, 700], expected.len()), expected);
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
        let slow = [900, 890, 900, 900];
        for pause in [PAUSE, 2 * PAUSE, 4 * PAUSE] {
            let expected = levels(&[(0, SLOW_RUNS), (1, TURN), (0, TURN), (0, pause)]);
            assert_eq!(run(&mut busy, slow, expected.len()), expected);
        }
    }

    #[test]
    fn one_thread_cannot_be_reduced() {
        let mut busy = Busy::new(0, Duration::from_micros(1));
        assert_eq!(run(&mut busy, [900; 4], 50), vec![0; 50]);
    }
}
