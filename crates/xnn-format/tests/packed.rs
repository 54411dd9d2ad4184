//! Packed weights in blobs and in files of their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use bytes::Bytes;
use xnn_format::{
    ALIGNMENT, Blob, Graph, NodeOp, PADDING, PackedEntry, PackedKey, PackedSection, WriteOptions,
    constants_digest, graph_digest, readable_behind, with_packed, write,
};

fn graph() -> Graph {
    let mut graph = common::convolution(3, false);
    graph.origin.producer = "test".into();
    graph
}

fn key(graph: &Graph, processor: &str) -> PackedKey {
    let (graph, constants) = (graph_digest(graph), constants_digest(graph));
    PackedKey { layout: 7, processor: processor.into(), graph, constants }
}

/// Two entries, the second of 100 bytes of `fill`.
fn section(graph: &Graph, processor: &str, fill: u8) -> PackedSection {
    let entries = vec![
        PackedEntry::new(0, 11, Bytes::from(vec![1; 64])),
        PackedEntry::new(5, 12, Bytes::from(vec![fill; 100])),
    ];
    PackedSection::new(key(graph, processor), entries)
}

fn blob(graph: &Graph) -> Vec<u8> {
    write(graph, &WriteOptions::default()).unwrap()
}

#[track_caller]
fn pack(bytes: &[u8], section: &PackedSection) -> Vec<u8> {
    with_packed(&Blob::from_bytes(bytes.to_vec()).unwrap(), section).unwrap()
}

fn processors(bytes: &[u8]) -> Vec<String> {
    let blob = Blob::from_bytes(bytes.to_vec()).unwrap();
    blob.packed().iter().map(|section| section.key.processor.clone()).collect()
}

#[test]
fn sections_round_trip_and_keep_the_rest_of_the_file() {
    let mut bare = graph();
    bare.origin = Default::default();
    for graph in [graph(), bare] {
        let plain = blob(&graph);
        let packed = pack(&plain, &section(&graph, "a b", 2));
        assert!(packed.starts_with(&plain));
        let blob = Blob::from_bytes(packed).unwrap();
        assert_eq!(**blob.graph(), graph);
        let info = Blob::from_bytes(plain).unwrap().info().clone();
        assert_eq!(blob.info().constants, info.constants);
        assert_eq!(
            blob.info().trailer_size.next_multiple_of(64),
            info.trailer_size.next_multiple_of(64)
        );
        let [read] = blob.packed() else { panic!("{:?}", blob.packed()) };
        let written = section(&graph, "a b", 2);
        assert_eq!((&read.key, &read.entries), (&written.key, &written.entries));
        for entry in &read.entries {
            assert!(entry.is_intact());
            let at = blob.storage().len() - readable_behind(&entry.data, blob.storage()).unwrap();
            assert!((at - entry.data.len()).is_multiple_of(ALIGNMENT));
            assert!(readable_behind(&entry.data, read.storage()).unwrap() >= PADDING);
        }
    }
}

#[test]
fn a_section_replaces_the_one_for_the_same_processor() {
    let graph = graph();
    let first = pack(&blob(&graph), &section(&graph, "a", 2));
    let both = pack(&first, &section(&graph, "b", 3));
    assert_eq!(processors(&both), ["a", "b"]);
    assert!(both.starts_with(&first));
    let again = pack(&both, &section(&graph, "a", 4));
    assert_eq!(processors(&again), ["b", "a"]);
    assert_eq!(again.len(), both.len());
    let again = Blob::from_bytes(again).unwrap();
    assert_eq!(again.packed()[1].entries[1].data, [4; 100].as_slice());
}

#[test]
fn a_bare_flatbuffer_cannot_hold_packed_weights() {
    let graph =
        common::one_to_one(0, &[2], &[2], |input, output| NodeOp::Softmax { input, output });
    let file = blob(&graph);
    let flatbuffer = Blob::from_bytes(file.clone()).unwrap().info().header.unwrap().flatbuffer();
    let flatbuffer = file[flatbuffer.start as usize..flatbuffer.end as usize].to_vec();
    let bare = Blob::from_bytes(flatbuffer).unwrap();
    let error = with_packed(&bare, &section(&graph, "a", 2)).unwrap_err();
    assert!(error.to_string().contains("bare flatbuffer"), "{error}");
}

#[test]
fn keys_differ_in_each_part() {
    let one = key(&graph(), "a");
    for other in [
        PackedKey { layout: 8, ..one.clone() },
        PackedKey { processor: "b".into(), ..one.clone() },
        PackedKey { graph: !one.graph, ..one.clone() },
    ] {
        assert!(!one.serves(&other));
        assert_ne!(one.digest(), other.digest());
    }
    let retrained = PackedKey { constants: !one.constants, ..one.clone() };
    assert!(one.serves(&retrained));
    assert_ne!(one.digest(), retrained.digest());
}

#[test]
fn digests_distinguish_graphs_and_constants() {
    let (one, mut other) = (graph(), graph());
    assert_eq!(graph_digest(&one), graph_digest(&other));
    let value = other.values.iter_mut().find(|value| value.data.is_some()).unwrap();
    let mut data = value.data.as_ref().unwrap().to_vec();
    *data.last_mut().unwrap() ^= 1;
    value.data = Some(data.into());
    assert_eq!(graph_digest(&one), graph_digest(&other));
    assert_ne!(constants_digest(&one), constants_digest(&other));
    other.nodes[0].flags ^= 1;
    assert_ne!(graph_digest(&one), graph_digest(&other));
}

#[test]
fn a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights");
    let written = section(&graph(), "a", 2);
    std::fs::write(&path, written.to_bytes().unwrap()).unwrap();
    let read = PackedSection::open(&path).unwrap();
    assert_eq!((read.key, read.entries), (written.key, written.entries));
    for damaged in [b"".as_slice(), b"XP00", &written_twice()] {
        std::fs::write(&path, damaged).unwrap();
        let error = PackedSection::open(&path).unwrap_err().to_string();
        assert!(error.contains("weights"), "{error}");
    }
}

fn written_twice() -> Vec<u8> {
    section(&graph(), "a", 2).to_bytes().unwrap().repeat(2)
}

/// Damages the section of a blob.
#[track_caller]
fn refused(expected: &str, damage: impl FnOnce(&mut [u8])) {
    let graph = graph();
    let mut file = blob(&graph);
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
    let start = file.len();
    let mut file = pack(&file, &section(&graph, "a", 2));
    damage(&mut file[start..]);
    let error = Blob::from_bytes(file).unwrap_err().to_string();
    assert!(error.contains("packed weights are damaged") && error.contains(expected), "{error}");
}

fn set_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn sizes_and_offsets_are_checked() {
    for size in [0, 63, 65, 1 << 40, u64::MAX] {
        refused("does not fit", |section| set_u64(section, 8, size));
    }
    refused("4294967295 entries", |section| section[4..8].fill(0xff));
    let second = 64 + 32;
    refused("extend beyond", |section| set_u64(section, second + 8, 1 << 20));
    refused("extend beyond", |section| set_u64(section, second + 8, u64::MAX));
    refused("extend beyond", |section| set_u64(section, second + 16, 1 << 20));
    refused("extend beyond", |section| set_u64(section, second + 16, u64::MAX));
    let processor = 64 + 2 * 32;
    refused("processor", |section| section[processor..processor + 4].fill(0xff));
    refused("not valid UTF-8", |section| section[processor + 4] = 0xff);
}

/// Readers keep each entry in memory, copy it unless it is aligned, and write it again.
#[test]
fn entries_take_no_more_than_the_section() {
    let first = 64;
    let second = 64 + 32;
    // The data are at 192 and 256, followed by 156 bytes.
    refused("multiple of 64 from 256 on", |section| set_u64(section, second + 8, 192));
    refused("multiple of 64 from 256 on", |section| set_u64(section, second + 8, 257));
    refused("multiple of 64 from 257 on", |section| set_u64(section, first + 16, 65));
    refused("multiple of 64 from 133 on", |section| set_u64(section, first + 8, 128));
    refused("extend beyond", |section| set_u64(section, second + 16, 129));
    refused("node 0 has two entries with the seed 0xb", |section| {
        section.copy_within(first..first + 8, second);
    });
}

#[test]
fn a_node_may_have_two_packed_layouts() {
    let graph = graph();
    let mut written = section(&graph, "a", 2);
    written.entries[1].node = 0;
    let blob = Blob::from_bytes(pack(&blob(&graph), &written)).unwrap();
    assert_eq!(blob.packed()[0].entries, written.entries);
}

#[test]
fn changed_weights_are_detected() {
    let graph = graph();
    let mut file = pack(&blob(&graph), &section(&graph, "a", 2));
    let at = file.windows(100).position(|bytes| bytes == [2; 100]).unwrap();
    file[at + 50] ^= 1;
    let blob = Blob::from_bytes(file).unwrap();
    let intact: Vec<bool> = blob.packed()[0].entries.iter().map(PackedEntry::is_intact).collect();
    assert_eq!(intact, [true, false]);
}

#[test]
fn no_damage_makes_reading_panic() {
    let graph = graph();
    let plain = blob(&graph).len().next_multiple_of(ALIGNMENT);
    let file = pack(&blob(&graph), &section(&graph, "a", 2));
    for length in plain..file.len() {
        let _ = Blob::from_bytes(file[..length].to_vec());
    }
    for at in plain..plain + 160 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut file = file.clone();
            file[at] = value;
            let _ = Blob::from_bytes(file);
        }
    }
}
