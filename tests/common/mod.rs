//! Arrays in `.npy` files, and how far two of them are apart.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::path::Path;

use npyz::NpyFile;
use xnn_model::{Quantization, Tensor};

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

/// From the smallest to the largest, zero included.
pub fn span(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((0.0f64, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    high - low
}

/// Symmetric weights as real numbers.
pub fn dequantized(weights: &Tensor) -> Vec<f64> {
    let shape = weights.shape.as_ref().unwrap();
    let steps = weights.data.as_ref().unwrap().iter().map(|byte| f64::from(byte.cast_signed()));
    match weights.quantization.as_ref().unwrap() {
        Quantization::PerTensor { scale, .. } => steps.map(|q| q * f64::from(*scale)).collect(),
        Quantization::PerAxis { scales, axis, .. } => {
            let inner: usize = shape[axis + 1..].iter().product();
            let scale = |at: usize| f64::from(scales[at / inner % scales.len()]);
            steps.enumerate().map(|(at, q)| q * scale(at)).collect()
        }
        other => panic!("{other:?}"),
    }
}
