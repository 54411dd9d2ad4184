//! A spinner on standard error while something takes long.

use std::time::Duration;

use indicatif::ProgressBar;
use xnn_file::memory;

/// Address space that a thread takes, in bytes.
const STACK: usize = 4 << 20;

/// Shows `message` until dropped; nothing where standard error is no terminal.
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn new(message: impl Into<String>) -> Self {
        let bar = ProgressBar::new_spinner().with_message(message.into());
        // It turns by a thread, which is not worth a failure where memory is short.
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
