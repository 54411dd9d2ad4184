//! Reads FlexBuffers maps of scalars, the options of custom and composite operators.
//!
//! The FlatBuffers project documents the format.

use std::collections::BTreeMap;

/// A scalar value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "named after the types")]
pub enum Scalar {
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Scalar {
    /// The nearest `f32`.
    #[must_use]
    pub fn as_f32(self) -> f32 {
        match self {
            Self::Int(value) => value as f32,
            Self::Float(value) => value as f32,
            Self::Bool(value) => f32::from(u8::from(value)),
        }
    }

    /// The integer part; saturates.
    #[must_use]
    pub fn as_i64(self) -> i64 {
        match self {
            Self::Int(value) => value,
            Self::Float(value) => value as i64,
            Self::Bool(value) => value.into(),
        }
    }

    /// Whether the integer part is not 0.
    #[must_use]
    pub fn as_bool(self) -> bool {
        self.as_i64() != 0
    }
}

const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const INDIRECT_INT: u8 = 6;
const INDIRECT_UINT: u8 = 7;
const INDIRECT_FLOAT: u8 = 8;
const MAP: u8 = 9;
const BOOL: u8 = 26;

/// The scalars of the map at the root. Skips values of other types. `None` if the bytes are not a
/// valid map.
#[must_use]
pub fn scalars(buffer: &[u8]) -> Option<BTreeMap<String, Scalar>> {
    let buffer = Buffer(buffer);
    let [head @ .., packed, root_width] = buffer.0 else { return None };
    let root_width = usize::from(*root_width);
    if packed >> 2 != MAP {
        return None;
    }
    let width = 1usize << (packed & 3);
    let map = buffer.indirect(head.len().checked_sub(root_width)?, root_width)?;
    let count = buffer.uint(map.checked_sub(width)?, width)?;
    let keys = buffer.indirect(map.checked_sub(3 * width)?, width)?;
    let key_width = buffer.uint(map.checked_sub(2 * width)?, width)?;
    let types = map.checked_add(count.checked_mul(width)?)?;
    let mut scalars = BTreeMap::new();
    for i in 0..count {
        let key = buffer.indirect(keys.checked_add(i.checked_mul(key_width)?)?, key_width)?;
        let packed = *buffer.0.get(types.checked_add(i)?)?;
        if let Some(scalar) = buffer.scalar(map + i * width, width, packed) {
            scalars.insert(buffer.text(key)?, scalar);
        }
    }
    Some(scalars)
}

struct Buffer<'a>(&'a [u8]);

impl Buffer<'_> {
    fn uint(&self, at: usize, width: usize) -> Option<usize> {
        let mut word = [0; 8];
        word.get_mut(..width)?.copy_from_slice(self.0.get(at..)?.get(..width)?);
        usize::try_from(u64::from_le_bytes(word)).ok()
    }

    /// Follows an offset, which points backwards from its own position.
    fn indirect(&self, at: usize, width: usize) -> Option<usize> {
        at.checked_sub(self.uint(at, width)?)
    }

    fn text(&self, at: usize) -> Option<String> {
        let rest = self.0.get(at..)?;
        let end = rest.iter().position(|&b| b == 0)?;
        String::from_utf8(rest.get(..end)?.to_vec()).ok()
    }

    fn scalar(&self, at: usize, width: usize, packed: u8) -> Option<Scalar> {
        let own_width = 1usize << (packed & 3);
        match packed >> 2 {
            INT => self.int(at, width),
            UINT => Some(Scalar::Int(i64::try_from(self.uint(at, width)?).ok()?)),
            FLOAT => self.float(at, width),
            BOOL => Some(Scalar::Bool(self.uint(at, width)? != 0)),
            INDIRECT_INT => self.int(self.indirect(at, width)?, own_width),
            INDIRECT_UINT => {
                let value = self.uint(self.indirect(at, width)?, own_width)?;
                Some(Scalar::Int(i64::try_from(value).ok()?))
            }
            INDIRECT_FLOAT => self.float(self.indirect(at, width)?, own_width),
            _ => None,
        }
    }

    fn int(&self, at: usize, width: usize) -> Option<Scalar> {
        let unsigned = self.uint(at, width)? as u64;
        let shift = 64u32.checked_sub(8 * u32::try_from(width).ok()?)?;
        Some(Scalar::Int((unsigned << shift).cast_signed() >> shift))
    }

    fn float(&self, at: usize, width: usize) -> Option<Scalar> {
        let bytes = self.0.get(at..)?.get(..width)?;
        Some(Scalar::Float(match bytes {
            [a, b] => half::f16::from_le_bytes([*a, *b]).to_f64(),
            [a, b, c, d] => f32::from_le_bytes([*a, *b, *c, *d]).into(),
            _ => f64::from_le_bytes(bytes.try_into().ok()?),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": 7, "b": 0.5}` with 32-bit values.
    const MAP_OF_TWO: &[u8] = &[
        b'a',
        0,
        b'b',
        0, // Keys.
        2,
        5,
        4, // Two offsets to keys, backwards, behind their number.
        0, // Alignment.
        3,
        0,
        0,
        0, // Offset to the vector of keys.
        1,
        0,
        0,
        0, // Width of its elements.
        2,
        0,
        0,
        0, // Number of values.
        7,
        0,
        0,
        0, // 7.
        0,
        0,
        0,
        0x3f, // 0.5.
        (INT << 2) | 2,
        (FLOAT << 2) | 2,
        10,
        (MAP << 2) | 2,
        1,
    ];

    #[test]
    fn a_map_of_scalars() {
        let scalars = scalars(MAP_OF_TWO).unwrap_or_default();
        assert_eq!(scalars.get("a"), Some(&Scalar::Int(7)));
        assert_eq!(scalars.get("b"), Some(&Scalar::Float(0.5)));
    }

    #[test]
    fn damaged_maps_are_refused_or_read_without_harm() {
        for cut in 0..MAP_OF_TWO.len() {
            let _ = scalars(&MAP_OF_TWO[cut..]);
            let _ = scalars(&MAP_OF_TWO[..cut]);
        }
        for at in 0..MAP_OF_TWO.len() {
            let mut damaged = MAP_OF_TWO.to_vec();
            damaged[at] = 0xff;
            let _ = scalars(&damaged);
        }
    }
}
