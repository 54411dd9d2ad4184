//! Time that each operator took.

use std::ptr;

use xnnpack_sys as sys;

use crate::buffer::AlignedBuffer;
use crate::status::{Error, Result, Status, check};

/// Time that one operator took in the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorTiming {
    /// XNNPACK's name of the operator, with the kind of microkernel if there are several.
    pub name: String,
    /// Wall-clock time in microseconds.
    pub micros: u64,
}

/// Reads names and times of all operators.
///
/// # Safety
/// `runtime` must be live.
pub(crate) unsafe fn read(runtime: sys::xnn_runtime_t) -> Result<Vec<OperatorTiming>> {
    // SAFETY: as the caller guarantees.
    let (names, times) = unsafe {
        (
            info(runtime, sys::xnn_profile_info_operator_name)?,
            info(runtime, sys::xnn_profile_info_operator_timing)?,
        )
    };
    let names = names.as_slice().split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let times = times.elements::<u64>().unwrap_or_default();
    Ok(names
        .zip(times)
        .map(|(name, &micros)| OperatorTiming { name: name.into(), micros })
        .collect())
}

/// Reads one kind of information, in XNNPACK's encoding.
///
/// # Safety
/// `runtime` must be live.
unsafe fn info(runtime: sys::xnn_runtime_t, what: sys::xnn_profile_info) -> Result<AlignedBuffer> {
    let mut size = 0;
    // SAFETY: with a length of 0, only the required length is written.
    let status = unsafe {
        sys::xnn_get_runtime_profiling_info(runtime, what, 0, ptr::null_mut(), &raw mut size)
    };
    match Status::check(status) {
        Err(Status::OutOfMemory) => {}
        Err(Status::InvalidState) => return Err(Error::state("profiling is off")),
        // Success means that there is nothing to report.
        Ok(()) => return Ok(AlignedBuffer::new(0)),
        Err(other) => {
            return Err(Error::new(other, "XNNPACK cannot determine the size of the profile"));
        }
    }
    let mut bytes = AlignedBuffer::new(size);
    let data = bytes.as_mut_slice().as_mut_ptr().cast();
    // SAFETY: `data` has `size` writable bytes, aligned for every numeric type.
    let status =
        unsafe { sys::xnn_get_runtime_profiling_info(runtime, what, size, data, &raw mut size) };
    check("read profile", status)?;
    Ok(bytes)
}
