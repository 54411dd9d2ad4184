//! Reads the scales of channels and blocks, each stored array once.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use flatbuffers::Vector;
use half::bf16;

use super::constants::Constants;
use crate::error::{Result, require};
use crate::generated::graph::{PerChannelGroupQuant, PerChannelQuant};
use crate::wire;

/// Scales read from constants, by the start address of the constant. Values may share whole arrays
/// but not parts, so that scales never take more than twice the memory of their constants.
#[derive(Default)]
pub(super) struct Scales(BTreeMap<usize, Stored>);

struct Stored {
    /// Kept so that no other constant can have the same address.
    bytes: Bytes,
    /// Size of one scale in bytes.
    width: usize,
    scales: Arc<[f32]>,
}

impl Scales {
    pub(super) fn of_channels(
        &mut self,
        params: &PerChannelQuant<'_>,
        constants: &Constants<'_>,
    ) -> Result<Arc<[f32]>> {
        match params.scale_buffer_idx() {
            0 => Ok(floats(params.scale())),
            index => {
                let count = params.num_scales();
                self.stored(constants, index, count, |bytes: [u8; 4]| f32::from_le_bytes(bytes))
            }
        }
    }

    pub(super) fn of_blocks(
        &mut self,
        params: &PerChannelGroupQuant<'_>,
        constants: &Constants<'_>,
    ) -> Result<Arc<[f32]>> {
        let early = params.scale_bf16().filter(|scales| !scales.is_empty());
        match (params.scale_buffer_idx(), early) {
            (0, None) => Ok(floats(params.scale())),
            // Early readers prefer bf16 if a file has both forms.
            (0, Some(scales)) => {
                Ok(scales.iter().map(|bits| bf16::from_bits(bits).to_f32()).collect())
            }
            (index, _) => {
                let count = params.num_scales();
                self.stored(constants, index, count, |b| bf16::from_le_bytes(b).to_f32())
            }
        }
    }

    /// Scales that are stored as a constant.
    fn stored<const N: usize>(
        &mut self,
        constants: &Constants<'_>,
        index: u32,
        count: u32,
        scale: impl Fn([u8; N]) -> f32,
    ) -> Result<Arc<[f32]>> {
        let bytes = constants.get(index)?;
        let (scales, rest) = bytes.as_chunks::<N>();
        require!(
            scales.len() == wire::size(count) && rest.is_empty(),
            "{count} scales do not match the {} bytes of constant {index}",
            bytes.len()
        );
        if bytes.is_empty() {
            return Ok(Arc::default());
        }
        let place = bytes.as_ptr_range();
        let (start, end) = (place.start.addr(), place.end.addr());
        if let Some((&other, stored)) = self.0.range(..end).next_back() {
            if other == start && stored.bytes.len() == bytes.len() && stored.width == N {
                return Ok(Arc::clone(&stored.scales));
            }
            require!(
                other.saturating_add(stored.bytes.len()) <= start,
                "its scales, constant {index}, overlap other scales; only whole constants can be shared"
            );
        }
        let scales: Arc<[f32]> = scales.iter().map(|&bytes| scale(bytes)).collect();
        self.0.insert(start, Stored { bytes, width: N, scales: Arc::clone(&scales) });
        Ok(scales)
    }
}

/// Reads the vector from its bytes, whose length is known: the iterator of the vector has no exact
/// size, so collecting it would reallocate.
fn floats(scales: Option<Vector<'_, f32>>) -> Arc<[f32]> {
    let (scales, _) = scales.as_ref().map_or(&[][..], Vector::bytes).as_chunks();
    scales.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}
