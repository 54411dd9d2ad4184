//! Memory that the caller lends to models.

use std::ffi::c_void;

use crate::arguments::array;
use crate::error::{Result, xnnd_error_t};

/// Function that is called when the library has finished with borrowed memory, with the context of its owner.
pub type xnnd_release_t = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Bytes that the caller keeps unchanged until they are released.
pub(crate) struct Lent {
    bytes: &'static [u8],
    /// Declared after `bytes`, which nothing reads when it is dropped.
    _release: Release,
}

struct Release {
    function: xnnd_release_t,
    context: *mut c_void,
}

// SAFETY: the bytes do not change, and the caller of `Lent::new` allows the release from any thread.
unsafe impl Send for Lent {}

impl Lent {
    /// Takes the caller's bytes on loan. They are released when the result is dropped, or at once on an error.
    ///
    /// # Safety
    ///
    /// `data` is NULL, or has `size` bytes that exist and do not change until `function` is called with `context`, which any
    /// thread may do; without a function, as long as the result and its copies exist.
    pub(crate) unsafe fn new(
        data: *const u8,
        size: usize,
        function: xnnd_release_t,
        context: *mut c_void,
    ) -> Result<Self, xnnd_error_t> {
        let release = Release { function, context };
        // SAFETY: as the caller of this function guarantees. The slice is dropped before its release.
        let bytes = unsafe { array(data, size, "data") }?;
        Ok(Self { bytes, _release: release })
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(function) = self.function {
            // SAFETY: the caller of `Lent::new` passes a function that accepts its context, and it is called once.
            unsafe { function(self.context) }
        }
    }
}
