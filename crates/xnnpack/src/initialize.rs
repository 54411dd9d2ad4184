//! Initialization of XNNPACK.

use std::sync::OnceLock;

use xnnpack_sys as sys;

use crate::status::{Result, check};

/// Initializes XNNPACK once per process. Every constructor of this crate calls it. Later calls return
/// the same result.
///
/// # Errors
/// - [`Status::UnsupportedHardware`](crate::Status::UnsupportedHardware) on a processor below
///   XNNPACK's minimum.
/// - [`Status::InvalidParameter`](crate::Status::InvalidParameter) if `XNN_MAX_ISA`
///   ([`isa_limit`](crate::isa_limit)) is not valid.
/// - [`Status::OutOfMemory`](crate::Status::OutOfMemory) if its tables cannot be allocated.
pub fn initialize() -> Result<()> {
    static OUTCOME: OnceLock<Result<()>> = OnceLock::new();
    OUTCOME
        .get_or_init(|| {
            crate::target::isa_limit()?;
            #[cfg(unix)]
            let allocator = &raw const crate::allocator::ALLOCATOR.0;
            #[cfg(not(unix))]
            let allocator = std::ptr::null();
            // SAFETY: the allocator is complete and static; `OnceLock` ensures a single call, which
            // has no other preconditions.
            check("initialize XNNPACK", unsafe { sys::xnn_initialize(allocator) })
        })
        .clone()
}
