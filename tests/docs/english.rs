//! Phrases that comments and documents avoid, because they need the neighbouring line or a second reading.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{files, shown};

/// No comment, paragraph or list item begins with these.
const BEGINNINGS: [&str; 9] =
    ["As ", "Else ", "Else, ", "Of ", "So that ", "That of ", "The same ", "Those ", "What "];

/// Not anywhere in a comment or a document.
const PHRASES: [&str; 24] = [
    "are given up",
    "as ever",
    "culprit",
    "for the day",
    "go whole",
    "goes whole",
    "has no say",
    "have no say",
    "is given up",
    "it is no ",
    "may it go",
    "may not go",
    "nobody asks",
    "nobody knows",
    "nobody reads",
    "operators that go",
    "operators that stay",
    "summed up",
    "takes the same way",
    "that people have",
    "there is none",
    "they are no ",
    "way of the data",
    "who asks",
];

#[test]
fn comments_and_documents_avoid_unclear_phrases() {
    let mut hits = Vec::new();
    let mut by_part: BTreeMap<String, usize> = BTreeMap::new();
    for file in files(&["c", "h", "md", "py", "rs", "toml"]) {
        let name = shown(&file);
        // The lists themselves.
        if name == "tests/docs/english.rs" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (line, text, is_beginning) in sentences(&file, &text) {
            if let Some(phrase) = unclear(&text, is_beginning) {
                hits.push(format!("{name}:{line}: {phrase:?} in: {text}"));
                *by_part.entry(part(&name)).or_default() += 1;
            }
        }
    }
    let hits_of = by_part.iter().map(|(part, count)| format!("{part}: {count}"));
    let summary = hits_of.collect::<Vec<_>>().join("\n");
    assert!(hits.is_empty(), "{}\n\n{} hits:\n{summary}", hits.join("\n"), hits.len());
}

/// The phrase to avoid that a line contains.
fn unclear(text: &str, is_beginning: bool) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let at_beginning = BEGINNINGS.iter().find(|it| is_beginning && text.starts_with(**it));
    at_beginning.or_else(|| PHRASES.iter().find(|it| contains_words(&lower, it))).copied()
}

/// Whether a phrase occurs with no letter directly before or behind it.
fn contains_words(text: &str, phrase: &str) -> bool {
    let is_letter = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(start, _)| {
        let behind = &text[start + phrase.len()..];
        !is_letter(text[..start].chars().next_back())
            && (phrase.ends_with(' ') || !is_letter(behind.chars().next()))
    })
}

/// The crate or folder that a file belongs to.
fn part(name: &str) -> String {
    let mut folders = name.split('/');
    match (folders.next(), folders.next(), folders.next()) {
        (Some("crates"), Some(name), _) => name.to_owned(),
        (Some(folder), Some(_), _) => folder.to_owned(),
        _ => ".".to_owned(),
    }
}

/// Lines of comments or documents: number, text, and whether a comment, paragraph or list item begins with it.
fn sentences(file: &Path, text: &str) -> Vec<(usize, String, bool)> {
    let line = match file.extension().and_then(|it| it.to_str()) {
        Some("md") => markdown,
        Some("py" | "toml") => hash_comment,
        _ => slash_comment,
    };
    let (mut found, mut in_code, mut is_inside) = (Vec::new(), false, false);
    for (index, whole) in text.lines().enumerate() {
        if whole.trim_start_matches(['/', '!', ' ']).starts_with("```") {
            in_code = !in_code;
        }
        let Some((text, begins)) = line(whole).filter(|_| !in_code) else {
            is_inside = false;
            continue;
        };
        let text = text.trim();
        let is_empty = text.is_empty();
        if !is_empty {
            found.push((index + 1, text.to_owned(), begins || !is_inside));
        }
        is_inside = !is_empty;
    }
    found
}

/// The text of a line, and whether it begins a list item.
fn markdown(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    if line.starts_with(['#', '|']) {
        return None;
    }
    Some(line.strip_prefix("- ").map_or((line, false), |item| (item, true)))
}

fn hash_comment(line: &str) -> Option<(&str, bool)> {
    let (code, comment) = line.split_once('#')?;
    let is_whole = code.trim().is_empty();
    (is_whole || (code.ends_with("  ") && is_outside_strings(code))).then_some((comment, !is_whole))
}

fn slash_comment(line: &str) -> Option<(&str, bool)> {
    let (code, comment) = match line.split_once("//") {
        Some(found) => found,
        None => line.split_once("/*")?,
    };
    let comment = comment.trim_start_matches(['/', '!', '*']).trim_end_matches("*/");
    let is_whole = code.trim().is_empty();
    (is_whole || is_outside_strings(code)).then_some((comment, !is_whole))
}

fn is_outside_strings(code: &str) -> bool {
    code.matches('"').count().is_multiple_of(2)
}
