//! Replays XN01 graphs on XNNPACK.
