//! Whether several threads are faster than one.

use std::time::Duration;

/// Runs of a turn that are not measured, and those that are: the first find another state of caches and threads.
const UNMEASURED: u32 = 2;
const MEASURED: u32 = 3;
const TURN: u32 = UNMEASURED + MEASURED;
/// All threads, in the slower runs that a session begins with, then the calling thread alone, then all threads again.
const TURNS: u32 = 3;
/// Runs after which another trial begins: others may have had the processors during the last one.
const PERIOD: u32 = 1000;
/// What threads must take of the time of one at most, to be worth the others' processors.
const GAIN: f64 = 0.97;

/// The first runs of a runtime, and of every thousand, which find out whether threads pay.
///
/// They meet after every operator, and read what others have written: how long that takes is a matter of
/// processors and of how they are connected, from half a microsecond to several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    runs: u32,
    /// The least times.
    together: Duration,
    alone: Duration,
}

impl Trial {
    /// Whether the next run is to be measured.
    pub(super) fn is_open(&self) -> bool {
        self.runs < TURNS * TURN
    }

    /// Whether the calling thread alone is to compute the next run.
    pub(super) fn is_alone(&self) -> bool {
        if self.is_open() {
            return self.runs / TURN == 1;
        }
        self.together.as_secs_f64() > self.alone.as_secs_f64() * GAIN
    }

    /// Tells that the run has been that was asked for, and how long it took if it was to be measured.
    pub(super) fn record(&mut self, time: Option<Duration>) {
        if let Some(time) = time {
            self.measure(time);
        }
        self.runs = if self.runs < PERIOD { self.runs + 1 } else { 0 };
    }

    fn measure(&mut self, time: Duration) {
        let best = if self.is_alone() { &mut self.alone } else { &mut self.together };
        let at = self.runs % TURN;
        if at == UNMEASURED || at > UNMEASURED && time < *best {
            *best = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one thread is left where measured runs take so many microseconds, alone and then together.
    fn is_left_alone(times: [[u64; 3]; 2]) -> bool {
        let mut trial = Trial::default();
        let turns = [[1; 3], times[0], times[1]];
        for (times, is_alone) in turns.into_iter().zip([false, true, false]) {
            for time in [1, 100_000].into_iter().chain(times) {
                assert_eq!((trial.is_open(), trial.is_alone()), (true, is_alone));
                trial.record(Some(Duration::from_micros(time)));
            }
        }
        let decided = trial.is_alone();
        while !trial.is_open() {
            assert_eq!(trial.is_alone(), decided);
            trial.record(None);
        }
        // Another trial.
        assert!(!trial.is_alone());
        decided
    }

    #[test]
    fn the_least_times_decide() {
        assert!(!is_left_alone([[100; 3], [60; 3]]));
        assert!(is_left_alone([[100; 3], [140; 3]]));
        // A tie is no gain.
        assert!(is_left_alone([[100; 3]; 2]));
        assert!(is_left_alone([[100; 3], [98, 98, 99]]));
        // What something else delays changes nothing.
        assert!(!is_left_alone([[100; 3], [900, 60, 900]]));
        assert!(is_left_alone([[900, 900, 100], [140; 3]]));
    }
}
