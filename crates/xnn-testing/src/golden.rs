//! Golden files: text that a test expects, kept beside the test.

use std::path::Path;
use std::{env, fs};

/// Asserts that `actual` equals the text in `file`; with `XNN_BLESS=1` in the
/// environment, writes it there instead.
///
/// Name the file relative to the test's crate:
/// `Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/...")`.
///
/// # Panics
///
/// If the texts differ, or the file cannot be read or written: the message
/// gives the first line that differs.
#[track_caller]
pub fn assert_golden(file: impl AsRef<Path>, actual: &str) {
    let file = file.as_ref();
    if env::var("XNN_BLESS").is_ok_and(|v| v == "1") {
        bless(file, actual);
        return;
    }
    let expected = fs::read_to_string(file).unwrap_or_else(|e| {
        panic!("{}: {e}; run the test with XNN_BLESS=1 to write it", file.display())
    });
    if let Some((line, old, new)) = first_difference(&expected, actual) {
        panic!(
            "{}:{line}: differs (XNN_BLESS=1 accepts the new text)\n  old: {old}\n  new: {new}",
            file.display()
        );
    }
}

fn bless(file: &Path, text: &str) {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    }
    fs::write(file, text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
}

/// Number (from 1) and content of the first line in which two texts differ;
/// line ends count for nothing.
fn first_difference<'a>(old: &'a str, new: &'a str) -> Option<(usize, &'a str, &'a str)> {
    const END: &str = "(end of text)";
    let mut old = old.lines();
    let mut new = new.lines();
    (1..).find_map(|line| match (old.next(), new.next()) {
        (None, None) => Some(None),
        (a, b) if a == b => None,
        (a, b) => Some(Some((line, a.unwrap_or(END), b.unwrap_or(END)))),
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_by_line() {
        assert_eq!(first_difference("a\nb\n", "a\r\nb"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some((2, "(end of text)", "b")));
    }

    #[test]
    #[should_panic(expected = "XNN_BLESS=1")]
    fn a_missing_file_says_how_to_make_it() {
        assert_golden("no/such/file.txt", "text");
    }
}
