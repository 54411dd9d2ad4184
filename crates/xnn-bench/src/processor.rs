//! This process's processor time.

use std::time::Duration;

use anyhow::Result;

/// Processor time of all threads of this process so far.
///
/// # Errors
/// The system does not report it by POSIX's clock.
#[cfg(unix)]
pub(crate) fn processor_time() -> Result<Duration> {
    use rustix::time::{ClockId, clock_gettime};

    Ok(clock_gettime(ClockId::ProcessCPUTime).try_into()?)
}

/// Processor time of all threads of this process so far.
///
/// # Errors
/// The system does not report it by POSIX's clock.
#[cfg(not(unix))]
pub(crate) fn processor_time() -> Result<Duration> {
    anyhow::bail!("the system does not report processor time")
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::thread;

    use super::*;

    #[test]
    fn all_threads_count() -> Result<()> {
        const WORK: Duration = Duration::from_millis(20);
        let before = processor_time()?;
        let work = || -> Result<()> {
            while processor_time()? < before + WORK {
                black_box(());
            }
            Ok(())
        };
        let done = thread::scope(|scope| scope.spawn(work).join());
        assert!(matches!(done, Ok(Ok(()))), "{done:?}");
        assert!(processor_time()? >= before + WORK);
        Ok(())
    }
}
