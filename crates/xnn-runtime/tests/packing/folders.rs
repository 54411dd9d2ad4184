//! Packed weights in cache folders.

use super::*;

#[test]
fn a_folder_keeps_packed_weights() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/when/needed");
    assert_eq!(run(&cached(0.01, &folder)), expected(0.01));
    let [file] = files(&folder).try_into().unwrap();
    let kept = PackedSection::open(&file).unwrap();
    assert_eq!(kept.entries.len(), 4);
    let program = cached(0.01, &folder);
    assert_eq!(run(&program), expected(0.01));
    assert_eq!(program.packed().unwrap().entries, kept.entries);
    // A blob of the same graph uses the same packed weights.
    let options = ProgramOptions { cache_dir: Some(folder.clone()), ..ProgramOptions::default() };
    let program = Program::from_blob_with(blob(0.01), &options).unwrap();
    assert_eq!(run(&program), expected(0.01));
    assert_eq!(files(&folder).len(), 1);
}

#[test]
fn a_retrained_model_gets_its_own_weights() {
    let folder = tempfile::tempdir().unwrap();
    for factor in [0.01, 0.02, 0.01, 0.02] {
        assert_eq!(run(&cached(factor, folder.path())), expected(factor));
    }
    assert_eq!(files(folder.path()).len(), 2);
}

#[test]
fn damaged_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    run(&cached(0.01, folder.path()));
    let [file] = files(folder.path()).try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    let mut other = whole.clone();
    other[20] ^= 1;
    for damaged in [&[][..], b"something else", &whole[..whole.len() / 2], &other] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(run(&cached(0.01, folder.path())), expected(0.01));
        assert!(fs::read(&file).unwrap() == whole);
    }
}

/// Files of a crashed process are ignored, and incomplete files are never read.
#[test]
fn concurrent_writes_are_safe() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".tmpCrash"), b"half").unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(run(&cached(0.01, folder.path())), expected(0.01)));
        }
    });
    assert_eq!(files(folder.path()).len(), 2);
    assert_eq!(run(&cached(0.01, folder.path())), expected(0.01));
}

#[test]
fn a_folder_that_cannot_be_written_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_eq!(run(&cached(0.01, &file)), expected(0.01));
}
