//! Tests of readers and writers of both dialects.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is a failed test")]

mod read;
mod write;
