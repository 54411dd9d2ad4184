//! Reproducible damage.

use std::ops::Range;

use xnn_testing::Random;

use crate::Kind;

/// Values at which checks are likely to end.
const EDGES: [u32; 12] =
    [0, 1, 2, 4, 6, 7, 0xff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

/// Slots of the root table that hold vectors of tables.
const GRAPH_TABLES: [usize; 3] = [1, 2, 8];
const PROGRAM_TABLES: [usize; 4] = [1, 3, 4, 7];
const MODEL_TABLES: [usize; 2] = [1, 4];

/// A damaged copy, and what was done to it.
pub fn mutant(bytes: &[u8], kind: &Kind, seed: u64) -> (Vec<u8>, String) {
    let mut random = Random::new(seed);
    let mut bytes = bytes.to_vec();
    let what = match random.below(8) {
        0 | 1 => flip_bit(&mut bytes, kind, &mut random),
        2 | 3 => replace_bytes(&mut bytes, kind, &mut random),
        4 | 5 => put_edge(&mut bytes, kind, &mut random),
        6 => swap_tables(&mut bytes, kind, &mut random),
        _ => cut(&mut bytes, &mut random),
    };
    (bytes, what)
}

fn flip_bit(bytes: &mut [u8], kind: &Kind, random: &mut Random) -> String {
    let (at, bit) = (place(bytes, kind, random), random.below(8));
    bytes[at] ^= 1 << bit;
    format!("bit {bit} of byte {at} flipped")
}

fn replace_bytes(bytes: &mut [u8], kind: &Kind, random: &mut Random) -> String {
    let places: Vec<usize> = (0..=random.below(4)).map(|_| place(bytes, kind, random)).collect();
    for &at in &places {
        bytes[at] = random.below(256) as u8;
    }
    format!("bytes {places:?} replaced")
}

fn put_edge(bytes: &mut [u8], kind: &Kind, random: &mut Random) -> String {
    let at = place(bytes, kind, random) & !3;
    let edge = EDGES[random.below(EDGES.len())];
    for (byte, edge) in bytes[at..].iter_mut().zip(edge.to_le_bytes()) {
        *byte = edge;
    }
    format!("{edge:#x} at {at}")
}

fn cut(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    let length = random.below(bytes.len());
    bytes.truncate(length);
    format!("cut to {length} bytes")
}

/// Exchanges two tables, of one list or of two.
fn swap_tables(bytes: &mut [u8], kind: &Kind, random: &mut Random) -> String {
    let entries = tables(bytes, kind);
    if entries.is_empty() {
        return "no tables to swap".into();
    }
    let mut pick = || entries[random.below(entries.len())];
    let ((a, a_target), (b, b_target)) = (pick(), pick());
    for (at, target) in [(a, b_target), (b, a_target)] {
        let offset = (target as u32).wrapping_sub(at as u32);
        bytes[at..at + 4].copy_from_slice(&offset.to_le_bytes());
    }
    format!("tables at {a_target} and {b_target} swapped")
}

/// Places of the offsets to tables in the root table's lists, with their targets.
fn tables(bytes: &[u8], kind: &Kind) -> Vec<(usize, usize)> {
    let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let u16_at = |at: usize| u16::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let start = flatbuffer(bytes, kind).start;
    let slots = match kind {
        Kind::Graph => &GRAPH_TABLES[..],
        Kind::Program => &PROGRAM_TABLES,
        Kind::Model(_) => &MODEL_TABLES,
    };
    let root = start + u32_at(start);
    let vtable = root.wrapping_sub_signed(u32_at(root) as i32 as isize);
    let mut entries = Vec::new();
    for slot in slots {
        let in_vtable = 4 + 2 * slot;
        let offset = if in_vtable < u16_at(vtable) { u16_at(vtable + in_vtable) } else { 0 };
        if offset == 0 {
            continue;
        }
        let list = root + offset + u32_at(root + offset);
        let places = (0..u32_at(list)).map(|index| list + 4 + 4 * index);
        entries.extend(places.map(|at| (at, at + u32_at(at))));
    }
    entries
}

/// Where damage matters: nearly always in headers and flatbuffer.
fn place(bytes: &[u8], kind: &Kind, random: &mut Random) -> usize {
    match (random.below(16), kind) {
        (0, _) => random.below(bytes.len()),
        (_, Kind::Model(parts)) => {
            let mut at = random.below(parts.iter().map(Range::len).sum());
            let part = parts.iter().find(|part| {
                let is_here = at < part.len();
                at -= if is_here { 0 } else { part.len() };
                is_here
            });
            part.unwrap().start + at
        }
        _ => random.below(flatbuffer(bytes, kind).end),
    }
}

/// An undamaged file's flatbuffer.
fn flatbuffer(bytes: &[u8], kind: &Kind) -> Range<usize> {
    let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    match kind {
        Kind::Program if bytes[8..].starts_with(b"eh00") => 0..u32_at(16),
        Kind::Program | Kind::Model(_) => 0..bytes.len(),
        Kind::Graph => u32_at(10)..u32_at(10) + u32_at(14),
    }
}
