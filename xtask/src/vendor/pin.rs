//! The file `PIN`: which archives the slot is filled from.

use anyhow::{Context, Result, bail, ensure};

/// A line of `PIN`.
#[derive(Debug, PartialEq)]
pub struct Archive<'a> {
    /// Folder in the slot.
    pub folder: &'a str,
    /// Debian source package.
    pub package: &'a str,
    /// Debian suite that has (or had) the version.
    pub suite: &'a str,
    /// Upstream part of the Debian version.
    pub version: &'a str,
    /// In lower-case hexadecimal digits.
    pub sha256: &'a str,
}

impl Archive<'_> {
    pub fn file_name(&self) -> String {
        format!("{}_{}.orig.tar.xz", self.package, self.version)
    }

    /// The folder that holds everything in most archives.
    pub fn top_folder(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }
}

/// Whether a former text of `PIN` names the same contents for the same folders, whatever suites have them.
pub fn has_same_content(former: &str, archives: &[Archive<'_>]) -> bool {
    let content = |one: &Archive<'_>| [one.folder, one.sha256].map(str::to_owned);
    parse(former).is_ok_and(|former| former.iter().map(content).eq(archives.iter().map(content)))
}

/// Reads `PIN`: five words on a line, `#` starts a comment line.
pub fn parse(text: &str) -> Result<Vec<Archive<'_>>> {
    let archives = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(index, line)| archive(line).with_context(|| format!("line {}", index + 1)))
        .collect::<Result<Vec<_>>>()?;
    ensure!(!archives.is_empty(), "it names no archive");
    Ok(archives)
}

fn archive(line: &str) -> Result<Archive<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[folder, package, suite, version, sha256] = words.as_slice() else {
        bail!("{} words in place of 5", words.len());
    };
    for word in [folder, package, suite, version] {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.~".contains(c);
        ensure!(
            word.chars().all(is_plain) && !word.starts_with(['.', '-']),
            "`{word}` is not a plain name"
        );
    }
    ensure!(
        sha256.len() == 64 && sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')),
        "`{sha256}` is not a SHA-256 in lower-case hexadecimal digits"
    );
    Ok(Archive { folder, package, suite, version, sha256 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const SHA256: &str = "90bde2caef0f880f627bab0dc805a86c4b8070cd98e3243db3046ab3f3be1a99";

    #[test]
    fn slots_stay_filled_when_only_the_suite_changes() {
        let pin = |suite: &str, sum: &str| format!("fp16 fp16 {suite} 1.abc {sum}\n");
        let (text, other) = (pin("forky", SHA256), SHA256.replace('0', "1"));
        let archives = parse(&text).unwrap();
        assert!(has_same_content(&format!("# a comment\n{}", pin("sid", SHA256)), &archives));
        assert_ne!(other, SHA256);
        assert!(!has_same_content(&pin("forky", &other), &archives));
        assert!(!has_same_content("", &archives));
    }

    #[test]
    fn a_line_is_read() {
        let text = format!("# comment\n\nfp16  libfp16 sid 0.0~git1.abc {SHA256}\n");
        let archives = parse(&text).unwrap();
        assert_eq!(
            archives,
            [Archive {
                folder: "fp16",
                package: "libfp16",
                suite: "sid",
                version: "0.0~git1.abc",
                sha256: SHA256,
            }]
        );
        assert_eq!(archives[0].file_name(), "libfp16_0.0~git1.abc.orig.tar.xz");
        assert_eq!(archives[0].top_folder(), "libfp16-0.0~git1.abc");
    }

    #[test]
    fn bad_lines_are_refused() {
        for (line, reason) in [
            (String::new(), "it names no archive"),
            ("# only a comment".to_owned(), "it names no archive"),
            ("a b c d".to_owned(), "line 1: 4 words in place of 5"),
            (format!("a b c d {SHA256} e"), "line 1: 6 words in place of 5"),
            (format!(".. b c d {SHA256}"), "line 1: `..` is not a plain name"),
            (format!("a/b b c d {SHA256}"), "line 1: `a/b` is not a plain name"),
            (format!("a -b c d {SHA256}"), "line 1: `-b` is not a plain name"),
        ] {
            assert_eq!(format!("{:#}", parse(&line).unwrap_err()), reason);
        }
        for digest in [&SHA256[1..], &SHA256.to_uppercase()] {
            let error = parse(&format!("a b c d {digest}")).unwrap_err();
            assert!(format!("{error:#}").contains("is not a SHA-256"), "{error:#}");
        }
    }

    /// The version of `xnnpack-sys` names the commit that is built.
    #[test]
    fn the_pin_of_this_repository_is_the_one_that_xnnpack_sys_names() {
        let pin = include_str!("../../../vendor/XNNPACK/PIN");
        let archives = parse(pin).unwrap();
        let xnnpack = archives.iter().find(|one| one.folder == "xnnpack").unwrap();
        let commit = xnnpack.version.rsplit_once('.').unwrap().1;
        let manifest = include_str!("../../../crates/xnnpack-sys/Cargo.toml");
        assert!(manifest.contains(&format!("+{commit}\"")), "{commit}");
    }
}
