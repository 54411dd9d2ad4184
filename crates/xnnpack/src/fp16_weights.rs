//! fp16 weights of fp32 layers, converted to fp32 only while XNNPACK packs them.
//!
//! XNNPACK packs fp32 weights only from fp32 data. For a model with fp16 weights that data would be
//! the largest part of all memory, so it exists only while XNNPACK reads it.

use std::fmt;
use std::iter;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::buffer::EXTRA_BYTES;
use crate::memory::{HUGE_PAGE, populate};
use crate::reservation::Reservation;
use crate::static_data::StaticData;
use crate::status::{Error, Result, Status};
use crate::threadpool::ThreadPool;

/// fp32 values in a huge page.
const PAGE_FLOATS: usize = HUGE_PAGE / size_of::<f32>();

/// An fp32 constant that is stored in fp16.
#[derive(Clone)]
pub struct Fp16Weights(Arc<Shared>);

struct Shared {
    data: StaticData,
    /// Address range in which XNNPACK finds the fp32 values. It never changes, and holds zeros
    /// while there are no users.
    floats: Reservation,
    users: Mutex<usize>,
}

/// Keeps the fp32 values in memory while it lives.
pub(crate) struct Widened(Arc<Shared>);

impl Fp16Weights {
    /// Creates a constant from fp16 values in the byte order of this machine.
    ///
    /// # Errors
    /// The number of bytes is odd; memory is exhausted for a copy, which is made of data at an odd
    /// address; or no address range is available for the fp32 values.
    pub fn new(data: StaticData) -> Result<Self> {
        const OP: &str = "store fp16 weights";
        if !data.bytes().len().is_multiple_of(size_of::<f16>()) {
            let reason = format!("expected an even number of bytes, found {}", data.bytes().len());
            return Err(Error::invalid(reason).during(OP));
        }
        let data = data.meeting(align_of::<f16>(), 0)?;
        // A constant's size is bounded, see `MAX_TENSOR_BYTES`, when its tensor is defined.
        let len = data.bytes().len().saturating_mul(2).saturating_add(EXTRA_BYTES);
        let floats = Reservation::new(len).map_err(|error| {
            Error::new(
                Status::OutOfMemory,
                format!("out of memory: cannot map {len} bytes: {error}"),
            )
            .during(OP)
        })?;
        Ok(Self(Arc::new(Shared { data, floats, users: Mutex::default() })))
    }

    /// The fp16 values.
    pub(crate) fn data(&self) -> &StaticData {
        &self.0.data
    }

    /// Size of the fp32 values in bytes.
    pub(crate) fn byte_size(&self) -> usize {
        self.0.values().len() * size_of::<f32>()
    }

    /// Address of the fp32 values, which are present while a [`Widened`] lives. Aligned to pages
    /// and followed by padding.
    pub(crate) fn start(&self) -> *const u8 {
        self.0.floats.start()
    }

    /// Converts the values to fp32 with the threads of `pool`, unless this has been done for another
    /// user.
    pub(crate) fn widen(&self, pool: Option<&ThreadPool>) -> Widened {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            self.0.fill(pool);
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
            // SAFETY: only the fp32 values are lost, and they have no users.
            unsafe { self.0.floats.release() };
        }
    }
}

impl Shared {
    fn values(&self) -> &[f16] {
        let bytes = self.data.bytes();
        // SAFETY: the bytes are aligned, every bit pattern is valid, and `new` has checked that
        // their number is even.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<f16>()) }
    }

    /// Writes the fp32 values. The caller holds the lock, and there are no users.
    fn fill(&self, pool: Option<&ThreadPool>) {
        let values = self.values();
        // SAFETY: the mapping is aligned to pages, has at least this size, and is initialized with
        // zeros. There are no users, and new ones wait for the lock, so nothing else accesses it.
        let floats = unsafe {
            std::slice::from_raw_parts_mut(self.floats.start().cast::<f32>(), values.len())
        };
        // One thread takes each huge page, and writes to it while it is in the cache.
        let before_page = floats.as_ptr().align_offset(HUGE_PAGE).min(values.len());
        let (first_values, values) = values.split_at(before_page);
        let (first_floats, floats) = floats.split_at_mut(before_page);
        let pages = values.chunks(PAGE_FLOATS).zip(floats.chunks_mut(PAGE_FLOATS));
        let parts: Vec<_> =
            iter::once((first_values, first_floats)).chain(pages).map(Mutex::new).collect();
        let widen = |part: &Mutex<(&[f16], &mut [f32])>| {
            let (values, floats) = &mut *part.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the memory is borrowed exclusively.
            unsafe { populate(floats.as_mut_ptr().cast(), size_of_val(*floats)) };
            values.convert_to_f32_slice(floats);
        };
        match pool {
            Some(pool) => pool.for_each(parts.len(), |at| widen(&parts[at])),
            None => parts.iter().for_each(widen),
        }
    }
}

impl fmt::Debug for Fp16Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fp16Weights({} values)", self.0.values().len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use bytes::Bytes;

    use super::*;

    /// The fp32 values as XNNPACK reads them.
    fn floats(weights: &Fp16Weights) -> Vec<f32> {
        let bytes = weights.byte_size() / size_of::<f32>();
        // SAFETY: this number of values is mapped, and nothing writes to them.
        unsafe { std::slice::from_raw_parts(weights.start().cast::<f32>(), bytes) }.to_vec()
    }

    #[test]
    fn fp32_values_are_present_while_there_are_users() {
        let pool = ThreadPool::new(3).unwrap();
        // Within a huge page, and beyond several.
        for len in [4000, 3 * PAGE_FLOATS + 123] {
            let expected: Vec<f32> = (0..len).map(|n| (n % 4000) as f32 - 2000.0).collect();
            let bytes: Vec<u8> =
                expected.iter().flat_map(|&n| f16::from_f32(n).to_ne_bytes()).collect();
            // At any address, on one thread and on several.
            for (offset, pool) in [(0, None), (1, None), (0, Some(&pool)), (1, Some(&pool))] {
                let file = Bytes::from([vec![0; offset], bytes.clone()].concat());
                let weights = Fp16Weights::new(StaticData::new(file.slice(offset..))).unwrap();
                let at = weights.start();
                for _ in 0..2 {
                    let (first, second) = (weights.widen(pool), weights.clone().widen(pool));
                    assert!(floats(&weights) == expected);
                    drop(first);
                    assert!(floats(&weights) == expected, "one user is left");
                    drop(second);
                    if cfg!(unix) {
                        assert!(floats(&weights).iter().all(|&n| n == 0.0));
                    }
                }
                assert_eq!(weights.start(), at);
            }
        }
    }

    #[test]
    fn an_odd_number_of_bytes_is_refused() {
        let odd = Fp16Weights::new(StaticData::new(Bytes::from_static(&[1, 2, 3])));
        assert!(odd.unwrap_err().to_string().contains("even number of bytes"));
        assert_eq!(Fp16Weights::new(StaticData::new(Bytes::new())).unwrap().byte_size(), 0);
    }
}
