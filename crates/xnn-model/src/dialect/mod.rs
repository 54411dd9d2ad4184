//! The dialects TFLite and Circle: one reader and one writer, instantiated for the generated code
//! of each schema.
//!
//! The macros of `options`, `read` and `write` refer to items of the module that uses them:
//! `schema`, its generated code, and functions for the differences of the schemas.

mod buffers;
mod fields;
mod file;
#[macro_use]
mod wire;
#[macro_use]
mod options;
#[macro_use]
mod read;
#[macro_use]
mod write;

pub(crate) mod circle;
#[cfg(test)]
mod tests;
pub(crate) mod tflite;

pub(crate) use file::File;
