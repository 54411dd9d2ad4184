//! Seeded random tensors.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_model::DType;

/// A reproducible source of random elements: the same seed gives the same
/// values on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    rng: ChaCha8Rng,
}

impl Random {
    /// A source that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Singles, uniform in `low..high`.
    pub fn f32s(&mut self, count: usize, low: f32, high: f32) -> Vec<f32> {
        (0..count).map(|_| self.rng.random_range(low..high)).collect()
    }

    /// Signed bytes, uniform over all values.
    pub fn i8s(&mut self, count: usize) -> Vec<i8> {
        (0..count).map(|_| self.rng.random()).collect()
    }

    /// Signed bytes without -128, as TFLite's specification has weights. Microkernels for ARM do not take two of them in a
    /// channel.
    pub fn i8_weights(&mut self, count: usize) -> Vec<i8> {
        self.i8s(count).into_iter().map(|weight| weight.max(-127)).collect()
    }

    /// Unsigned bytes, uniform over all values.
    pub fn u8s(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.rng.random()).collect()
    }

    /// An integer in `0..bound`.
    ///
    /// # Panics
    ///
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound)
    }

    /// The little-endian bytes of `count` elements: floats in -1..1, integers
    /// over all values, booleans 0 or 1.
    ///
    /// # Panics
    ///
    /// If elements of this type have no fixed size.
    pub fn tensor(&mut self, dtype: DType, count: usize) -> Vec<u8> {
        match dtype {
            DType::F32 => le_bytes(&self.f32s(count, -1.0, 1.0), |v| v.to_le_bytes()),
            DType::F16 => {
                le_bytes(&self.f32s(count, -1.0, 1.0), |v| half::f16::from_f32(*v).to_le_bytes())
            }
            DType::BF16 => {
                le_bytes(&self.f32s(count, -1.0, 1.0), |v| half::bf16::from_f32(*v).to_le_bytes())
            }
            DType::F64 => le_bytes(&self.f32s(count, -1.0, 1.0), |v| f64::from(*v).to_le_bytes()),
            DType::Bool => (0..count).map(|_| u8::from(self.rng.random::<bool>())).collect(),
            sized => self.u8s(sized.byte_size(count).expect("elements of a fixed size")),
        }
    }

    /// The little-endian bytes of `count` weights: [`i8_weights`](Self::i8_weights) for int8,
    /// otherwise elements of [`tensor`](Self::tensor).
    pub fn weights(&mut self, dtype: DType, count: usize) -> Vec<u8> {
        match dtype {
            DType::I8 => le_bytes(&self.i8_weights(count), |weight| weight.to_le_bytes()),
            _ => self.tensor(dtype, count),
        }
    }
}

/// The little-endian bytes of a slice.
pub fn le_bytes<T, const N: usize>(values: &[T], encode: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(encode).collect()
}
