//! Relative links of Markdown files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{files, shown};

/// Extensions of files that documents name.
const SOURCES: [&str; 6] = ["c", "fbs", "h", "md", "py", "rs"];

#[test]
fn relative_links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for file in files(&["md"]) {
        for (line, text) in prose(&fs::read_to_string(&file).unwrap()) {
            for link in targets(&text) {
                if let Err(why) = follow(&file, link) {
                    broken.push(format!("{}:{line}: {link}: {why}", shown(&file)));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{} broken links:\n{}", broken.len(), broken.join("\n"));
}

/// Code spans of documents that are paths, whole or from some folder on, are those of files. (The paths in
/// `schemas/README.md` are of other projects.)
#[test]
fn named_files_exist() {
    let existing = files(&SOURCES);
    let mut missing = Vec::new();
    for file in files(&["md"]).iter().filter(|file| !file.ends_with("schemas/README.md")) {
        for (line, text) in prose(&fs::read_to_string(file).unwrap()) {
            let pieces: Vec<&str> = text.split('`').collect();
            for (span, behind) in pieces.iter().zip(&pieces[1..]).skip(1).step_by(2) {
                let is_link = behind.starts_with("](");
                if !is_link && names_source(span) && !existing.iter().any(|it| it.ends_with(span)) {
                    missing.push(format!("{}:{line}: {span}", shown(file)));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} missing files:\n{}", missing.len(), missing.join("\n"));
}

/// Lines outside of code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((index + 1, line.to_owned()));
        }
    }
    lines
}

/// Targets of links within the repository.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
}

fn follow(file: &Path, link: &str) -> Result<(), String> {
    let (path, heading) = link.split_once('#').map_or((link, None), |(a, b)| (a, Some(b)));
    let target: PathBuf =
        if path.is_empty() { file.to_owned() } else { file.parent().unwrap().join(path) };
    if !target.exists() {
        return Err("no such file".into());
    }
    let Some(heading) = heading else { return Ok(()) };
    let text = fs::read_to_string(&target).map_err(|error| error.to_string())?;
    let headings = prose(&text);
    let mut headings = headings.iter().filter(|(_, line)| line.starts_with('#'));
    if headings.any(|(_, line)| anchor(line) == heading) {
        Ok(())
    } else {
        Err("no such heading".into())
    }
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|it| it.is_alphanumeric() || [' ', '-', '_'].contains(it));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// Whether a code span is the path of one source file or document.
fn names_source(span: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
    let extension = Path::new(span).extension().and_then(|it| it.to_str());
    let is_source = extension.is_some_and(|it| SOURCES.contains(&it));
    is_source && span.contains('/') && span.chars().all(is_plain)
}
