//! Writing a model as a new file.
//!
//! What the representation holds is written; what it drops (minimum and
//! maximum of quantization, debug indices, options of unknown operators) is
//! not. A model that would lose something that matters is refused.

use crate::dialect::{circle, tflite};
use crate::error::Error;
use crate::graph::Model;

/// The bytes of a TFLite file, identifier `TFL3`.
///
/// Equal constants are stored once; each starts at a multiple of 16 bytes.
///
/// # Errors
///
/// If the model has operators, types or data that a TFLite file cannot carry,
/// or constants beyond 2 GB.
pub fn to_tflite(model: &Model) -> Result<Vec<u8>, Error> {
    tflite::write(model)
}

/// The bytes of a Circle file, identifier `CIR0`.
///
/// # Errors
///
/// As [`to_tflite`], for what Circle cannot carry.
pub fn to_circle(model: &Model) -> Result<Vec<u8>, Error> {
    circle::write(model)
}
