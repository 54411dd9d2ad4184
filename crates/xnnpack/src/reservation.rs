//! Memory at a fixed address that is returned to the system between uses.

use std::io;

pub(crate) use imp::Reservation;

#[cfg(any(unix, windows))]
mod imp {
    use memmap2::{MmapOptions, MmapRaw};

    use super::io;

    /// Memory that holds zeros until it is written to.
    pub(crate) struct Reservation(MmapRaw);

    impl Reservation {
        /// Reserves `len` bytes, which take no memory until they are written to.
        pub(crate) fn new(len: usize) -> io::Result<Self> {
            let memory = MmapRaw::from(MmapOptions::new().len(len).map_anon()?);
            // Rejected advice is not an error.
            #[cfg(target_os = "linux")]
            if let Err(error) = memory.advise(memmap2::Advice::HugePage) {
                log::debug!("fp32 weights are not in huge pages: {error}");
            }
            Ok(Self(memory))
        }

        /// Address of the first byte, aligned to pages.
        pub(crate) fn start(&self) -> *mut u8 {
            self.0.as_mut_ptr()
        }

        /// Returns the memory to the system and keeps the addresses.
        ///
        /// # Safety
        /// Nothing accesses the memory meanwhile. Its contents become zeros.
        #[cfg(unix)]
        pub(crate) unsafe fn release(&self) {
            // SAFETY: the caller does not need the contents.
            let advised = unsafe { self.0.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            if let Err(error) = advised {
                log::debug!("fp32 weights stay in memory: {error}");
            }
        }

        /// Does nothing: the memory stays allocated on other systems.
        ///
        /// # Safety
        /// None.
        #[cfg(not(unix))]
        pub(crate) unsafe fn release(&self) {}
    }
}

#[cfg(not(any(unix, windows)))]
mod imp {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    use super::io;

    /// Alignment of XNNPACK's own allocations.
    const ALIGNMENT: usize = 64;

    /// Memory that holds zeros until it is written to. It is always allocated.
    pub(crate) struct Reservation {
        start: NonNull<u8>,
        layout: Layout,
    }

    impl Reservation {
        /// Allocates `len` zeros.
        pub(crate) fn new(len: usize) -> io::Result<Self> {
            let layout =
                Layout::from_size_align(len.max(1), ALIGNMENT).map_err(io::Error::other)?;
            // SAFETY: the size is not 0.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) });
            Ok(Self { start: start.ok_or(io::ErrorKind::OutOfMemory)?, layout })
        }

        /// Address of the first byte, aligned to 64 bytes.
        pub(crate) fn start(&self) -> *mut u8 {
            self.start.as_ptr()
        }

        /// Does nothing: the memory is always allocated.
        ///
        /// # Safety
        /// None.
        pub(crate) unsafe fn release(&self) {}
    }

    impl Drop for Reservation {
        fn drop(&mut self) {
            // SAFETY: the memory was allocated with this layout, and nothing uses it any longer.
            unsafe { dealloc(self.start.as_ptr(), self.layout) }
        }
    }

    // SAFETY: the memory is not bound to a thread.
    unsafe impl Send for Reservation {}
    // SAFETY: only the address is shared; users of the memory synchronize among themselves.
    unsafe impl Sync for Reservation {}
}
