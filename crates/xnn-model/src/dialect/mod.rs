//! The two schemas, TFLite and Circle: one reader and one writer, instantiated
//! for the generated code of each.
//!
//! The macros of `options`, `read` and `write` refer to the module that uses
//! them for `schema` (its generated code) and for the few things in which the
//! schemas differ.

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

pub(crate) use read::File;
