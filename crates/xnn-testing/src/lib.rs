//! Test support: model builder, tolerances, golden files.
