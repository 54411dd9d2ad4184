//! Weights that stay in fp16 until they are packed.
//!
//! XNNPACK packs fp32 weights from fp32 ones only. Of weights that a model has in fp16 these would be the larger part of all
//! memory: they exist for the time in which XNNPACK reads them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;
use half::slice::HalfFloatSliceExt;
use memmap2::{MmapOptions, MmapRaw};

use crate::buffer::{EXTRA_BYTES, StaticData};
use crate::status::{Error, Result, Status};

/// A constant of fp32 numbers, kept in fp16.
#[derive(Clone)]
pub struct Halves(Arc<Shared>);

struct Shared {
    data: StaticData,
    /// Where XNNPACK finds the fp32 numbers, at the same addresses always: zeros, unless somebody uses them.
    floats: MmapRaw,
    users: Mutex<usize>,
}

/// While it lives, the fp32 numbers are there.
pub(crate) struct Widened(Arc<Shared>);

impl Halves {
    /// The fp16 numbers, in the byte order of this machine, of which there is no odd byte.
    ///
    /// # Errors
    /// There is an odd byte; there is no memory for a copy, which is made of data at an odd address; there are no addresses
    /// for the fp32 numbers.
    pub fn new(data: StaticData) -> Result<Self> {
        const OP: &str = "take fp16 weights";
        if !data.bytes().len().is_multiple_of(size_of::<f16>()) {
            return Err(Error::invalid("half a number at the end").during(OP));
        }
        let data = data.meeting(align_of::<f16>(), 0)?;
        // A constant's size is bounded, see `MAX_TENSOR_BYTES`, when its tensor is defined.
        let len = data.bytes().len().saturating_mul(2).saturating_add(EXTRA_BYTES);
        let floats = MmapOptions::new().len(len).map_anon().map_err(|error| {
            Error::new(Status::OutOfMemory, format!("{len} bytes: {error}")).during(OP)
        })?;
        Ok(Self(Arc::new(Shared { data, floats: floats.into(), users: Mutex::default() })))
    }

    /// The fp16 numbers.
    pub(crate) fn data(&self) -> &StaticData {
        &self.0.data
    }

    /// Bytes of the fp32 numbers.
    pub(crate) fn byte_size(&self) -> usize {
        self.0.numbers().len() * size_of::<f32>()
    }

    /// Where XNNPACK finds the fp32 numbers while they are there; aligned to pages, with padding behind them.
    pub(crate) fn start(&self) -> *const u8 {
        self.0.floats.as_ptr()
    }

    /// The fp32 numbers.
    pub(crate) fn widen(&self) -> Widened {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            self.0.fill();
        }
        *users += 1;
        drop(users);
        Widened(Arc::clone(&self.0))
    }
}

impl Drop for Widened {
    fn drop(&mut self) {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0 {
            self.0.give_up();
        }
    }
}

impl Shared {
    fn numbers(&self) -> &[f16] {
        let bytes = self.data.bytes();
        // SAFETY: the bytes are aligned, any bits are a number, and `new` has checked that none is left over.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<f16>()) }
    }

    /// Writes the fp32 numbers. Nobody uses them, and the lock is held.
    fn fill(&self) {
        let numbers = self.numbers();
        self.populate();
        // SAFETY: the mapping is aligned to pages and as large, zeros are numbers, and nobody else accesses it: there
        // are no users, and another one would wait for the lock.
        let floats = unsafe {
            std::slice::from_raw_parts_mut(self.floats.as_mut_ptr().cast::<f32>(), numbers.len())
        };
        numbers.convert_to_f32_slice(floats);
    }

    /// Takes the memory at once, by huge pages where there are any: page by page it takes longer than the numbers do. That
    /// the system does not take advice is no error.
    #[cfg(target_os = "linux")]
    fn populate(&self) {
        use memmap2::Advice::{HugePage, PopulateWrite};

        for advice in [HugePage, PopulateWrite] {
            if let Err(error) = self.floats.advise(advice) {
                log::debug!("{advice:?} of memory for fp32 weights: {error}");
            }
        }
    }

    /// Other systems are asked for nothing.
    #[cfg(not(target_os = "linux"))]
    fn populate(&self) {}

    /// Gives the memory back, not the addresses. Nobody uses them, and the lock is held.
    #[cfg(unix)]
    fn give_up(&self) {
        use memmap2::UncheckedAdvice::DontNeed;

        // SAFETY: nothing is lost but the fp32 numbers, which nobody uses.
        if let Err(error) = unsafe { self.floats.unchecked_advise(DontNeed) } {
            log::debug!("fp32 weights stay in memory: {error}");
        }
    }

    /// Other systems keep what they are given.
    #[cfg(not(unix))]
    fn give_up(&self) {}
}

impl fmt::Debug for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Halves({} numbers)", self.0.numbers().len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use bytes::Bytes;

    use super::*;

    /// The fp32 numbers as XNNPACK sees them.
    fn floats(halves: &Halves) -> Vec<f32> {
        let bytes = halves.byte_size() / size_of::<f32>();
        // SAFETY: so many numbers are mapped, and nobody writes to them.
        unsafe { std::slice::from_raw_parts(halves.start().cast::<f32>(), bytes) }.to_vec()
    }

    #[test]
    fn numbers_are_there_while_somebody_uses_them() {
        let expected: Vec<f32> = (0..4000u16).map(|n| f32::from(n) - 2000.0).collect();
        let bytes: Vec<u8> =
            expected.iter().flat_map(|&n| f16::from_f32(n).to_ne_bytes()).collect();
        // At any address.
        for offset in 0..2 {
            let file = Bytes::from([vec![0; offset], bytes.clone()].concat());
            let halves = Halves::new(StaticData::new(file.slice(offset..))).unwrap();
            let at = halves.start();
            for _ in 0..2 {
                let (first, second) = (halves.widen(), halves.clone().widen());
                assert!(floats(&halves) == expected);
                drop(first);
                assert!(floats(&halves) == expected, "one is left");
                drop(second);
                if cfg!(unix) {
                    assert!(floats(&halves).iter().all(|&n| n == 0.0));
                }
            }
            assert_eq!(halves.start(), at);
        }
    }

    #[test]
    fn half_a_number_is_none() {
        let odd = Halves::new(StaticData::new(Bytes::from_static(&[1, 2, 3])));
        assert!(odd.unwrap_err().to_string().contains("half a number"));
        assert_eq!(Halves::new(StaticData::new(Bytes::new())).unwrap().byte_size(), 0);
    }
}
