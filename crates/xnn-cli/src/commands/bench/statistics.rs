//! Statistics of times, and counters of the process.

use std::fs;
use std::io::{self, Write};
use std::time::Duration;

/// Unit for times of runs, and its number in a millisecond. Tiny models take microseconds.
pub fn unit(median_ms: f64) -> (f64, &'static str) {
    if median_ms < 0.1 { (1e3, "us") } else { (1.0, "ms") }
}

/// Writes a line for each figure that there is: its name, value and unit.
pub fn write_figures(out: &mut dyn Write, figures: &[(&str, Option<f64>, &str)]) -> io::Result<()> {
    for (name, value, unit) in figures {
        if let Some(value) = value {
            writeln!(out, "  {name:<16} {value:>10.3} {unit}")?;
        }
    }
    Ok(())
}

/// Nearest-rank quantile of sorted times; zero without times.
pub fn quantile(sorted: &[Duration], fraction: f64) -> Duration {
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Median in milliseconds.
pub fn median(sorted: &[Duration]) -> f64 {
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    f64::midpoint(ms(lower), ms(upper))
}

/// Milliseconds.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Peak resident memory, as Linux reports it.
pub fn peak_rss_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

/// Processor time of all threads of this process so far; `None` on systems that do not report it by POSIX's clock.
#[cfg(unix)]
pub fn cpu_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};

    clock_gettime(ClockId::ProcessCPUTime).try_into().ok()
}

/// Processor time of all threads of this process so far; `None` on systems that do not report it by POSIX's clock.
#[cfg(not(unix))]
pub fn cpu_time() -> Option<Duration> {
    None
}

/// Processor time of one of `runs` since `before`, in milliseconds.
pub fn cpu_ms_since(before: Option<Duration>, runs: usize) -> Option<f64> {
    let spent = cpu_time()?.saturating_sub(before?);
    Some(ms(spent) / runs.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_tiny_models_keep_their_digits() {
        assert_eq!(unit(0.0021), (1e3, "us"));
        assert_eq!(unit(0.21), (1.0, "ms"));
    }

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        let times: Vec<Duration> = (1..=10).map(Duration::from_millis).collect();
        assert_eq!(quantile(&times, 0.0), Duration::from_millis(1));
        assert_eq!(quantile(&times, 0.9), Duration::from_millis(9));
        assert_eq!(quantile(&times, 1.0), Duration::from_millis(10));
        assert_eq!(median(&times), 5.5);
        assert_eq!(median(&times[..9]), 5.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[cfg(unix)]
    #[test]
    fn processor_time_grows_with_work() {
        let before = cpu_time();
        assert!(before.is_some());
        let begin = std::time::Instant::now();
        while cpu_time() <= before {
            assert!(begin.elapsed() < Duration::from_secs(60), "the clock stands still");
        }
    }
}
