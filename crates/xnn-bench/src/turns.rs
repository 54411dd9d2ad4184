//! Turns, and what is made of their times.

use std::thread;
use std::time::Duration;

use anyhow::Result;

/// Pause after a turn on several threads, which wait for work for a moment before they sleep.
const PAUSE: Duration = Duration::from_millis(50);
/// Time that a side runs in each turn before its measured time, to fill caches.
const WARM_UP: Duration = Duration::from_millis(20);
const MEASURED: Duration = Duration::from_millis(50);
/// Sides whose runs take longer have no warm-up, and take part in the first rounds only.
const SLOW: Duration = Duration::from_millis(200);
const FIRST_ROUNDS: usize = 3;

/// Runs all sides in turns, `rounds` times: of each side, the times of each round. A side that fails drops
/// out and has its error.
///
/// Slow sides take part in the first rounds only, so that they do not make up most of the session. In
/// every second round the order is the other way round, so that whatever else the machine does meets
/// all sides alike. `threads` has those of each side.
pub fn in_turns(
    threads: &[usize],
    rounds: usize,
    mut run: impl FnMut(usize, Duration) -> Result<Vec<f64>>,
) -> Vec<Result<Vec<Vec<f64>>>> {
    let mut times: Vec<Result<Vec<Vec<f64>>>> = threads.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..rounds {
        for position in 0..threads.len() {
            let side = if round % 2 == 0 { position } else { threads.len() - 1 - position };
            let (Some(entry), Some(threads)) = (times.get_mut(side), threads.get(side)) else {
                continue;
            };
            let Ok(rounds) = entry else { continue };
            let slow = rounds.last().is_some_and(|last| median(last) > SLOW.as_micros() as f64);
            if slow && round >= FIRST_ROUNDS {
                continue;
            }
            let warm = if slow { Ok(Vec::new()) } else { run(side, WARM_UP) };
            match warm.and_then(|_| run(side, MEASURED)) {
                Ok(times) => rounds.push(times),
                Err(error) => *entry = Err(error),
            }
            if *threads > 1 {
                thread::sleep(PAUSE);
            }
        }
    }
    times
}

/// Median of the rounds' ratios of medians; below 1 where `ours` is faster.
#[must_use]
pub fn ratio(ours: &[Vec<f64>], theirs: &[Vec<f64>]) -> f64 {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| median(ours) / median(theirs));
    median(&ratios.collect::<Vec<_>>())
}

/// The mean of the two in the middle of an even number; NaN of none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(sorted.len() / 2), at(sorted.len().saturating_sub(1) / 2))
}

/// The nearest-rank quantile; NaN of none.
#[must_use]
pub fn quantile(values: &[f64], fraction: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The machine is ten times slower in the second round; that says nothing about the sides.
        let ours = [vec![1.0, 1.0, 5.0], vec![10.0], vec![1.0]];
        let theirs = [vec![2.0], vec![20.0, 20.0, 90.0], vec![4.0]];
        assert_eq!(ratio(&ours, &theirs), 0.5);
        assert_eq!(ratio(&theirs, &ours), 2.0);
        assert!(ratio(&[], &[]).is_nan());
    }

    #[test]
    fn middles_and_ranks() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), 2.5);
        assert_eq!(median(&values[..3]), 3.0);
        assert_eq!(quantile(&values, 0.9), 4.0);
        assert_eq!(quantile(&values, 0.5), 2.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert!(median(&[]).is_nan() && quantile(&[], 0.9).is_nan());
    }

    #[test]
    fn slow_sides_stop_early() {
        let mut warm = 0;
        let times = in_turns(&[1, 1], 5, |side, time| {
            warm += usize::from(side == 1 && time == WARM_UP);
            Ok(vec![if side == 1 { 2.0 * SLOW.as_micros() as f64 } else { 1.0 }])
        });
        let rounds: Vec<_> = times.iter().map(|one| one.as_ref().map_or(0, Vec::len)).collect();
        assert_eq!((rounds, warm), (vec![5, FIRST_ROUNDS], 1));
    }

    #[test]
    fn sides_take_turns_and_a_failing_one_drops_out() {
        let mut order = Vec::new();
        let times = in_turns(&[1, 1, 1], 3, |side, time| {
            if side == 1 && order.len() > 2 {
                bail!("ended");
            }
            if time == MEASURED {
                order.push(side);
            }
            Ok(vec![side as f64])
        });
        assert_eq!(order, [0, 1, 2, 2, 0, 0, 2]);
        assert!(matches!(times.as_slice(), [Ok(a), Err(_), Ok(c)] if a.len() == 3 && c.len() == 3));
    }
}
