//! Threads that keep processors busy, to measure on a machine with other load.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that compute without pause until this value is dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts `count` threads; 0 starts none.
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
            // The loop cannot panic.
            let _ = thread.join();
        }
    }
}
