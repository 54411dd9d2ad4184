//! Files in other formats, and damaged, truncated, too large and mutated files.

use xnn_format::{Blob, ErrorKind, GraphLimits, ReadOptions, WriteOptions, write};
use xnn_testing::{Random, files_below, shared_dir};

use crate::common::{convolution, every_node};

#[test]
fn other_formats() {
    for (bytes, expected) in [
        (&b""[..], "too short (0 bytes)"),
        (b"short", "too short (5 bytes)"),
        (b"this is a text file", "found \" is \""),
        (&[0; 64], "found \"\\\\x00"),
        (b"\x1c\0\0\0TFL3\0\0\0\0", "found \"TFL3\""),
        (b"\0\0\0\0XH00", "bad header: the file ends after 8 bytes"),
        (b"\x08\0\0\0XN01\0\0\0\0", "the lists of values and nodes are missing"),
        (b"\x09\0\0\0XN01\0\0\0\0", "the graph is damaged"),
    ] {
        let message = Blob::from_bytes(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn paths_that_are_not_files() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let error = Blob::open(folder).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert!(error.to_string().contains(folder), "{error}");
    let error = Blob::open(format!("{folder}/absent.xnn")).unwrap_err();
    assert!(error.to_string().contains("absent.xnn: "), "{error}");
}

#[test]
fn truncated_anywhere() {
    let bytes = write(&convolution(7, true), &WriteOptions::default()).unwrap();
    for end in 0..bytes.len() {
        let error = Blob::from_bytes(bytes[..end].to_vec()).unwrap_err();
        let expected = match end {
            0..8 => "too short",
            8..30 => "the file ends after",
            _ => "beyond the end of the file",
        };
        assert!(error.to_string().contains(expected), "{end}: {error}");
    }
}

#[test]
fn limits_hold() {
    let bytes = write(&convolution(7, true), &WriteOptions::default()).unwrap();
    let read = |change: &dyn Fn(&mut GraphLimits)| {
        let mut limits = GraphLimits::default();
        change(&mut limits);
        let options = ReadOptions { limits, constants: None };
        Blob::from_bytes_with(bytes.clone(), &options)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    read(&|_| ()).unwrap();
    read(&|limits| limits.max_depth = 4).unwrap();
    assert!(read(&|limits| limits.max_depth = 3).unwrap_err().contains("damaged"));
    assert!(read(&|limits| limits.max_tables = 10).unwrap_err().contains("damaged"));
    assert!(read(&|limits| limits.max_externals = 1).unwrap_err().contains("external values"));
    assert!(read(&|limits| limits.max_value_bytes = 8).unwrap_err().contains("size in bytes"));
}

const MUTANTS: usize = 100_000;
/// Mutations hit mostly the part of a file before this offset: header and flatbuffer.
const MUTATED: usize = 4096;

/// Changes a byte or a word, copies some bytes elsewhere, or truncates.
fn mutate(original: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [u32; 6] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff];
    let mut bytes = original.to_vec();
    let end = bytes.len().min(MUTATED) - 16;
    let at = random.below(end);
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes[at..at + 4].copy_from_slice(&WORDS[random.below(WORDS.len())].to_le_bytes()),
        2 => bytes.copy_within(at..at + 1 + random.below(16), random.below(end)),
        3 => bytes[at] ^= 1 << random.below(8),
        _ => bytes[at] = random.u8s(1)[0],
    }
    bytes
}

#[test]
fn mutated_files_are_read_or_refused() {
    let mut files: Vec<Vec<u8>> = every_node(11)
        .iter()
        .map(|graph| write(graph, &WriteOptions::default()).unwrap())
        .collect();
    if let Some(interop) = shared_dir("interop") {
        let payloads = files_below(&interop, &["xnn"]);
        let payloads = payloads.iter().map(|path| std::fs::read(path).unwrap());
        files.extend(payloads.filter(|bytes| bytes.len() < 100_000));
    }
    let mut random = Random::new(12);
    let mut read = 0;
    for n in 0..MUTANTS {
        let mutant = mutate(&files[n % files.len()], &mut random);
        let Ok(blob) = Blob::from_bytes(mutant) else { continue };
        let written = write(blob.graph(), &WriteOptions::default()).unwrap();
        assert_eq!(Blob::from_bytes(written).unwrap().graph(), blob.graph());
        read += 1;
    }
    assert!(read > MUTANTS / 10 && read < MUTANTS, "{read} of {MUTANTS}");
}
