//! Whether several threads are faster than one.

use std::time::Duration;

/// Runs that are not measured, after a change of threads and in the beginning: they take memory that others find there.
const UNMEASURED: u32 = 2;
const MEASURED: u32 = 3;
/// Runs with all threads, and then by the calling thread alone.
const OF_EACH: u32 = UNMEASURED + MEASURED;
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
        self.runs < 2 * OF_EACH
    }

    /// Whether the calling thread alone is to compute the next run.
    pub(super) fn is_alone(&self) -> bool {
        if self.is_open() {
            return self.runs >= OF_EACH;
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
        let at = self.runs % OF_EACH;
        if at == UNMEASURED || at > UNMEASURED && time < *best {
            *best = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one thread is left where measured runs take so many microseconds, together and then alone.
    fn is_left_alone(times: [[u64; 3]; 2]) -> bool {
        let mut trial = Trial::default();
        for (times, is_alone) in times.into_iter().zip([false, true]) {
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
        assert!(!is_left_alone([[60; 3], [100; 3]]));
        assert!(is_left_alone([[140; 3], [100; 3]]));
        // A tie is no gain.
        assert!(is_left_alone([[100; 3]; 2]));
        assert!(is_left_alone([[98, 98, 99], [100; 3]]));
        // What something else delays changes nothing.
        assert!(!is_left_alone([[900, 60, 900], [100; 3]]));
        assert!(is_left_alone([[140; 3], [900, 900, 100]]));
    }
}
