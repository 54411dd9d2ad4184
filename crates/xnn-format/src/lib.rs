//! The XN01 graph and the .xnn container: typed, written deterministically, read with validation.
