//! Gets source archives through apt.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::pin::Archive;
use crate::apt::{Apt as State, output};

const HELPER: &str = "/usr/lib/apt/apt-helper";

/// apt with the package lists of the pinned suites.
pub struct Apt<'a> {
    archives: &'a [Archive<'a>],
    folder: PathBuf,
    /// Set up at the first question.
    state: Option<Result<State, String>>,
}

impl<'a> Apt<'a> {
    /// `folder` is for apt's state and for what it downloads; `archives` says
    /// which suites' package lists are needed.
    pub fn new(archives: &'a [Archive<'a>], folder: PathBuf) -> Self {
        Self { archives, folder, state: None }
    }

    /// Downloads the archive and returns its file after `check` accepted it.
    pub fn download(
        &mut self,
        archive: &Archive<'_>,
        check: impl Fn(&Path, &Archive<'_>) -> Result<()>,
    ) -> Result<PathBuf> {
        let state = self.state.get_or_insert_with(|| {
            set_up(self.archives, &self.folder).map_err(|error| format!("{error:#}"))
        });
        let state = state.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let (addresses, mut failures) = addresses(state, archive);
        let file = self.folder.join(archive.file_name());
        for address in addresses {
            // Only the `.orig` archive counts. `apt-get source` would want the
            // `.dsc` as well, which mirrors do not always have.
            let result = output(
                Command::new(HELPER)
                    .arg("download-file")
                    .arg(&address)
                    .arg(&file)
                    .arg(format!("SHA256:{}", archive.sha256)),
            )
            .and_then(|_| check(&file, archive));
            match result {
                Ok(()) => return Ok(file),
                Err(error) => failures.push(format!("{address}: {error:#}")),
            }
        }
        bail!("{}", failures.join("; "))
    }
}

/// Addresses of the archive: the one in the package lists; then, for a version that its suite no longer has, its place in
/// each mirror's pool. Also why the package lists did not help, where they did not.
fn addresses(state: &State, archive: &Archive<'_>) -> (Vec<String>, Vec<String>) {
    let (mut addresses, mut failures) = (Vec::new(), Vec::new());
    match listed(state, archive) {
        Ok(address) => addresses.push(address),
        Err(error) => failures.push(format!("{error:#}")),
    }
    addresses.extend(state.mirrors.iter().map(|mirror| pool(mirror, archive)));
    (addresses, failures)
}

fn listed(state: &State, archive: &Archive<'_>) -> Result<String> {
    if let Err(error) = &state.lists {
        bail!("{error}");
    }
    let package = format!("{}/{}", archive.package, archive.suite);
    let uris = output(
        Command::new("apt-get").args(&state.options).args(["--print-uris", "source"]).arg(&package),
    )?;
    uri_of(&uris, &archive.file_name())
        .with_context(|| format!("{package} has another version than the pinned one"))
}

fn set_up(archives: &[Archive<'_>], folder: &Path) -> Result<State> {
    let suites: BTreeSet<&str> = archives.iter().map(|one| one.suite).collect();
    // A machine's keys may be older than the suite. The lists need not be trusted:
    // they only say where a file is whose SHA-256 is pinned.
    let lines: Vec<String> =
        suites.iter().map(|suite| format!("deb-src [trusted=yes] {{}} {suite} main")).collect();
    State::new(folder, &lines)
}

/// The address of `file` in what `apt-get --print-uris` prints: lines of
/// `'<address>' <file> <size> <hash>`.
fn uri_of(uris: &str, file: &str) -> Option<String> {
    uris.lines().find_map(|line| {
        let (uri, rest) = line.strip_prefix('\'')?.split_once("' ")?;
        (rest.split_whitespace().next() == Some(file)).then(|| uri.to_owned())
    })
}

/// The archive's place on a mirror, by Debian's rule for its pool.
fn pool(mirror: &str, archive: &Archive<'_>) -> String {
    let package = archive.package;
    let letters = if package.starts_with("lib") { 4 } else { 1 };
    let prefix: String = package.chars().take(letters).collect();
    format!("{mirror}/pool/main/{prefix}/{package}/{}", archive.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orig_archive_is_found_among_the_uris() {
        let uris = "\
Reading package lists...
'http://one.example/a_1-1.dsc' a_1-1.dsc 2264 SHA256:7c
'http://one.example/a_1%7e2.orig.tar.xz' a_1~2.orig.tar.xz 17 SHA256:55
";
        assert_eq!(
            uri_of(uris, "a_1~2.orig.tar.xz").as_deref(),
            Some("http://one.example/a_1%7e2.orig.tar.xz")
        );
        assert_eq!(uri_of(uris, "a_1~3.orig.tar.xz"), None);
    }

    #[test]
    fn the_pool_has_a_folder_for_each_first_letter_and_each_library() {
        let archive =
            |package| Archive { folder: "a", package, suite: "sid", version: "1", sha256: "" };
        assert_eq!(pool("m:/d", &archive("fp16")), "m:/d/pool/main/f/fp16/fp16_1.orig.tar.xz");
        assert_eq!(
            pool("m:/d", &archive("libfp16")),
            "m:/d/pool/main/libf/libfp16/libfp16_1.orig.tar.xz"
        );
    }
}
