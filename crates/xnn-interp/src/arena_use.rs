//! Memory use of the intermediate tensors.

/// Memory of the intermediate tensors, padding included. Tensors whose size only their kernel knows
/// are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaUse {
    /// Bytes of the arena that the tensors share.
    pub arena_bytes: usize,
    /// Bytes that the tensors would take without sharing.
    pub tensor_bytes: usize,
}
