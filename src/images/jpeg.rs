//! Detection of truncated JPEG files, whose missing pixels the decoder fills with gray.

/// First bytes of a JPEG file.
const START: &[u8] = &[0xff, 0xd8];
const END_OF_IMAGE: u8 = 0xd9;

/// Whether a JPEG file is truncated; false for other files.
pub(super) fn is_cut(file: &[u8]) -> bool {
    file.strip_prefix(START).is_some_and(|rest| !has_end(rest))
}

/// Whether segments and entropy-coded data lead to the marker that ends the image. Markers of thumbnails are inside
/// segments.
fn has_end(mut rest: &[u8]) -> bool {
    while let Some(at) = rest.iter().position(|&byte| byte == 0xff) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let (&[code, ref behind @ ..], false) = (rest, rest.starts_with(&[0xff])) else {
            continue;
        };
        rest = match code {
            END_OF_IMAGE => return true,
            // Markers without a segment, and an escaped byte 0xff.
            0x00 | 0x01 | 0xd0..=0xd8 => behind,
            // The length includes its own two bytes.
            _ => match behind {
                &[high, low, ..] => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    behind.get(length.max(2)..).unwrap_or_default()
                }
                _ => return false,
            },
        };
    }
    false
}
