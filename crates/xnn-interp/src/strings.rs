//! Packed string tensors in TFLite's layout: the count, the offset of each string, the end, and the
//! bytes.

use xnn_model::element_count;

use crate::error::{Refusal, refuse};

/// Bytes of the count and of an offset.
const WORD: usize = 4;

/// The strings of a tensor, in row-major order.
pub(crate) fn unpack<'a>(shape: &[usize], bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, Refusal> {
    let expected = element_count(shape);
    if bytes.is_empty() && expected == Some(0) {
        return Ok(vec![]);
    }
    let (words, _) = bytes.as_chunks::<WORD>();
    let mut words = words.iter().map(|word| usize::try_from(i32::from_le_bytes(*word)).ok());
    let count = words.next().flatten();
    let Some(count) = count.filter(|count| Some(*count) == expected) else {
        return refuse(format!("the number of strings does not match shape {shape:?}"));
    };
    let ends = words.clone().skip(1);
    let strings = words.zip(ends).take(count).map(|(start, end)| bytes.get(start?..end?));
    let strings = strings.collect::<Option<Vec<_>>>().filter(|strings| strings.len() == count);
    strings.ok_or_else(|| Refusal("the packed strings are invalid".into()))
}

/// Packs strings. The result must not exceed the limit.
pub(crate) fn pack(strings: &[&[u8]], limit: usize) -> Result<Vec<u8>, Refusal> {
    let head = strings.len().saturating_add(2).saturating_mul(WORD);
    let size = strings.iter().fold(head, |size, string| size.saturating_add(string.len()));
    if size > limit || i32::try_from(size).is_err() {
        return refuse(format!(
            "strings of {size} bytes exceed the limit of {}",
            limit.min(i32::MAX as usize)
        ));
    }
    let mut bytes = Vec::with_capacity(size);
    let mut put = |number: usize| bytes.extend((number as i32).to_le_bytes());
    put(strings.len());
    let mut at = head;
    put(at);
    for string in strings {
        at += string.len();
        put(at);
    }
    strings.iter().for_each(|string| bytes.extend(*string));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn unpacked(shape: &[usize], bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let strings = unpack(shape, bytes).ok()?;
        Some(strings.into_iter().map(<[u8]>::to_vec).collect())
    }

    #[test]
    fn packed_strings_are_unpacked() {
        let strings: [&[u8]; 3] = [b"one", b"", b"three"];
        let bytes = pack(&strings, 100).unwrap();
        assert_eq!(bytes.len(), 5 * WORD + 8);
        assert_eq!(unpacked(&[3, 1], &bytes).unwrap(), strings);
        assert_eq!(pack(&strings, 28).unwrap(), bytes);
        assert!(pack(&strings, 27).is_err());
        assert_eq!(unpacked(&[0], &pack(&[], 100).unwrap()).unwrap(), [[0u8; 0]; 0]);
        assert_eq!(unpacked(&[2, 0], &[]).unwrap(), [[0u8; 0]; 0]);
    }

    #[test]
    fn damaged_strings_are_refused() {
        let bytes = pack(&[b"one", b"two"], 100).unwrap();
        for shape in [&[][..], &[1], &[3], &[2, 0], &[usize::MAX, 2]] {
            assert_eq!(unpacked(shape, &bytes), None, "{shape:?}");
        }
        for end in 0..bytes.len() {
            assert_eq!(unpacked(&[2], &bytes[..end]), None, "{end} bytes");
        }
        for word in [-1, i32::MAX, 1 << 20] {
            for at in 0..4 {
                let mut damaged = bytes.clone();
                damaged[at * WORD..][..WORD].copy_from_slice(&i32::to_le_bytes(word));
                assert_eq!(unpacked(&[2], &damaged), None, "{word} at {at}");
            }
        }
    }
}
