//! A spinner on standard error during long operations.

use std::time::Duration;

use indicatif::ProgressBar;
use xnn_file::memory;

/// Address space of a thread, in bytes.
const STACK: usize = 4 << 20;

/// Shows a message until dropped, if standard error is a terminal.
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn new(message: impl Into<String>) -> Self {
        let bar = ProgressBar::new_spinner().with_message(message.into());
        // A thread turns it. If memory is short, it stands still instead of failing.
        if !bar.is_hidden() && memory::ensure(STACK, "a thread").is_ok() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
