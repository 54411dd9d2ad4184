//! Arrays in `.npy` files, and how far two of them are apart.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::path::Path;

use npyz::NpyFile;
use xnn_model::{DType, Quantization, Tensor};

/// Elements of an array, as LiteRT writes them and as sessions want them.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    /// Little-endian, in C order.
    pub bytes: Vec<u8>,
    pub element: Element,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F32,
    I8,
    U8,
}

impl Array {
    pub fn read(path: &Path) -> Self {
        let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let npy =
            NpyFile::new(&file[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let shape = npy.shape().iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
        let descr = npy.dtype().descr();
        let element = match descr.trim_matches('\'') {
            "<f4" => Element::F32,
            "|i1" => Element::I8,
            "|u1" => Element::U8,
            other => panic!("{}: elements of type {other}", path.display()),
        };
        Self { shape, bytes: npy.into_inner().to_vec(), element }
    }

    /// The elements as numbers: quantized ones as they are stored.
    pub fn numbers(&self) -> Vec<f64> {
        numbers(self.element, &self.bytes)
    }
}

/// The elements in `bytes` as numbers: quantized ones as they are stored.
pub fn numbers(element: Element, bytes: &[u8]) -> Vec<f64> {
    match element {
        Element::F32 => {
            let singles = bytes.as_chunks::<4>().0.iter();
            singles.map(|single| f64::from(f32::from_le_bytes(*single))).collect()
        }
        Element::I8 => bytes.iter().map(|byte| f64::from(byte.cast_signed())).collect(),
        Element::U8 => bytes.iter().map(|byte| f64::from(*byte)).collect(),
    }
}

/// The largest distance of two elements; infinite where only one is a number.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "number of elements");
    let each = a.iter().zip(b).map(|(a, b)| match (a - b).abs() {
        _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        apart if apart.is_nan() => f64::INFINITY,
        apart => apart,
    });
    each.fold(0.0, f64::max)
}

/// From the smallest finite one to the largest, zero included.
pub fn span(values: &[f64]) -> f64 {
    let finite = values.iter().filter(|value| value.is_finite());
    let (low, high) = finite.fold((0.0f64, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    high - low
}

/// A quantized constant as real numbers.
pub fn dequantized(tensor: &Tensor) -> Vec<f64> {
    real_numbers(tensor, tensor.data.as_ref().unwrap())
}

/// Real values that elements of a quantized tensor stand for.
pub fn real_numbers(tensor: &Tensor, bytes: &[u8]) -> Vec<f64> {
    let shape = tensor.shape.as_ref().unwrap();
    // A nibble may be left over.
    let steps = integers(tensor.dtype, bytes).into_iter().take(shape.iter().product());
    let real = |step: i64, scale: f32, zero: i64| (step - zero) as f64 * f64::from(scale);
    match tensor.quantization.as_ref().unwrap() {
        Quantization::PerTensor { scale, zero_point } => {
            steps.map(|step| real(step, *scale, *zero_point)).collect()
        }
        Quantization::PerAxis { scales, zero_points, axis } => {
            let inner: usize = shape[axis + 1..].iter().product();
            let channel = |at: usize| at / inner % scales.len();
            let each = steps.enumerate().map(|(at, step)| (channel(at), step));
            each.map(|(channel, step)| real(step, scales[channel], zero_points.at(channel)))
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Elements of up to 32 bits.
fn integers(dtype: DType, bytes: &[u8]) -> Vec<i64> {
    match dtype {
        DType::I4 => {
            let nibbles = bytes.iter().flat_map(|byte| [byte << 4, byte & 0xf0]);
            nibbles.map(|high| i64::from(high.cast_signed() >> 4)).collect()
        }
        DType::I8 => bytes.iter().map(|byte| i64::from(byte.cast_signed())).collect(),
        DType::U8 => bytes.iter().copied().map(i64::from).collect(),
        DType::I32 => {
            bytes.as_chunks().0.iter().map(|b| i64::from(i32::from_le_bytes(*b))).collect()
        }
        other => panic!("elements of type {other}"),
    }
}
