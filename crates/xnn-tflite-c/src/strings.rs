//! TFLite's layout of tensors of strings: the count, the offset of each string, the end, the bytes.

use std::ffi::c_int;

/// Bytes of the count and of an offset.
const WORD: usize = size_of::<c_int>();

/// The strings in packed bytes; `None` if they are damaged.
pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (words, _) = bytes.as_chunks::<WORD>();
    let word = |place: usize| usize::try_from(c_int::from_ne_bytes(*words.get(place)?)).ok();
    let count = word(0)?;
    // A damaged count does not reserve memory.
    if count >= words.len() {
        return None;
    }
    (0..count).map(|place| bytes.get(word(place + 1)?..word(place + 2)?)).collect()
}

/// Packs strings; `None` if they are too long for the layout.
pub(crate) fn pack(strings: &[&[u8]]) -> Option<Vec<u8>> {
    let mut offset = strings.len().checked_add(2)?.checked_mul(WORD)?;
    let mut bytes = Vec::new();
    bytes.extend(c_int::try_from(strings.len()).ok()?.to_ne_bytes());
    bytes.extend(c_int::try_from(offset).ok()?.to_ne_bytes());
    for string in strings {
        offset = offset.checked_add(string.len())?;
        bytes.extend(c_int::try_from(offset).ok()?.to_ne_bytes());
    }
    strings.iter().for_each(|string| bytes.extend(*string));
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_strings_are_unpacked() {
        for strings in [&[][..], &[&b""[..]], &[&b"one"[..], b"", b"three"]] {
            let packed = pack(strings).unwrap();
            assert_eq!(packed.len(), (strings.len() + 2) * WORD + strings.concat().len());
            assert_eq!(unpack(&packed).unwrap(), strings);
        }
    }

    #[test]
    fn damaged_strings_are_rejected() {
        let packed = pack(&[b"one", b"two"]).unwrap();
        for end in 0..packed.len() {
            assert_eq!(unpack(&packed[..end]), None, "{end} bytes");
        }
        for word in [-1, c_int::MAX] {
            for place in 0..4 {
                let mut damaged = packed.clone();
                damaged[place * WORD..][..WORD].copy_from_slice(&c_int::to_ne_bytes(word));
                assert_eq!(unpack(&damaged), None, "{word} at {place}");
            }
        }
    }
}
