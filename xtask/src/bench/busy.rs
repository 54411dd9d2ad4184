//! A machine that does other things, too.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that take as much of the processors as they can get, until it is dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts `count` threads; with 0 the machine stays as it is.
    pub fn start(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = || {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let mut x = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    x = hint::black_box(x.wrapping_add(1));
                }
            })
        };
        let threads = (0..count).map(|_| spin()).collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The loop has no way to panic.
            let _ = thread.join();
        }
    }
}
